import { afterAll, jest } from '@jest/globals';
import { useResource } from './use-resource.ts';
import { startWorkflowEnvironment, type WorkflowTestEnvironment } from './workflow-environment.ts';

/** The first start in a fresh clone downloads the test server. */
const START_TIMEOUT_MS = 120_000;
const TEST_TIMEOUT_MS = 60_000;
/**
 * On a busy machine the time-skipping server loses a response now and then (about one in a hundred tests), and the test waits
 * for it until it times out. The cause is not found; each repetition is logged.
 */
const RETRIES = 2;

export function useWorkflowEnvironment(): WorkflowTestEnvironment {
  // Both settings outlive a file, because the files of a worker share their globals.
  jest.setTimeout(TEST_TIMEOUT_MS);
  jest.retryTimes(RETRIES, { logErrorsBeforeRetry: true, retryImmediately: true });
  afterAll(() => {
    jest.retryTimes(0);
  });
  return useResource(startWorkflowEnvironment, (environment) => environment.stop(), {
    timeoutMs: START_TIMEOUT_MS,
  });
}
