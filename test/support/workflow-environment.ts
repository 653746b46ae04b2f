import { fileURLToPath } from 'node:url';
import type { ConnectionOptions } from '@temporalio/client';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  Runtime,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker';
import { findTemporalTestServer } from '../../dev/stack/temporal-binaries.ts';
import { createServiceMetrics } from '../../platform/service-metrics.ts';
import { CLIENT_INTERCEPTORS, SEARCH_ATTRIBUTES } from '../../platform/temporal.ts';
import { runEndSinks } from '../../workers/run-context.ts';
import { loadWorkflowBundle } from '../../workers/workflow-bundle.ts';
import { waitsForRest } from './run-at-rest.ts';

const CACHE = fileURLToPath(new URL('../../.cache/temporal', import.meta.url));
const KEYWORD = 2;

export interface WorkflowTestEnvironment {
  readonly temporal: TestWorkflowEnvironment;
  /**
   * Runs `test` while a worker serves `taskQueue` with the given activities. Time is skipped while the test waits for a
   * workflow's result.
   */
  withWorker<T>(
    taskQueue: string,
    activities: object,
    test: () => Promise<T>,
    options?: Pick<WorkerOptions, 'sinks'> & {
      /** By default, signals wait until the run is at rest; see {@link waitsForRest}. */
      signalsWhileExecuting?: boolean;
    },
  ): Promise<T>;
  stop(): Promise<void>;
}

let quiet = false;

/** Silences the SDK's logs. The runtime can be installed only once per process. */
export function quietTemporal(): void {
  if (quiet) return;
  quiet = true;
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR' }), forward: {} } },
  });
}

/** Temporal's time-skipping server with the project's workflows: hours of waiting pass immediately. */
export async function startWorkflowEnvironment(): Promise<WorkflowTestEnvironment> {
  quietTemporal();
  const path = await findTemporalTestServer({
    cacheDir: CACHE,
    environment: process.env,
    log: () => undefined,
  });
  let signalsWait = false;
  const temporal: TestWorkflowEnvironment = await TestWorkflowEnvironment.createTimeSkipping({
    client: {
      interceptors: {
        workflow: [
          waitsForRest(
            () => temporal.connection,
            () => signalsWait,
          ),
        ],
      },
    },
    server: { executable: { type: 'existing-path', path } },
    // Calls that outlive the environment fail, and do not end in the next test file of the process.
    plugins: [
      {
        name: 'interceptors of the service',
        configureConnection: (options: ConnectionOptions) => ({
          ...options,
          interceptors: CLIENT_INTERCEPTORS,
        }),
      },
    ],
  });
  await temporal.connection.operatorService.addSearchAttributes({
    namespace: 'default',
    searchAttributes: Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, KEYWORD])),
  });
  const workflowBundle = await loadWorkflowBundle();
  return {
    temporal,
    async withWorker(taskQueue, activities, test, { signalsWhileExecuting = false, ...options } = {}) {
      const worker = await Worker.create({
        connection: temporal.nativeConnection,
        taskQueue,
        workflowBundle,
        activities,
        // An activity learns of its cancellation by the next heartbeat that is sent, by default every 24 s.
        maxHeartbeatThrottleInterval: '100 ms',
        // A worker that does not stop fails its test instead of holding the whole run.
        shutdownForceTime: '30 s',
        // Without them the SDK reports an error for each failed run.
        sinks: runEndSinks({ tracing: undefined, failures: createServiceMetrics().workflowFailures }),
        ...options,
      });
      signalsWait = !signalsWhileExecuting;
      try {
        return await worker.runUntil(test());
      } finally {
        signalsWait = false;
      }
    },
    stop: () => temporal.teardown(),
  };
}
