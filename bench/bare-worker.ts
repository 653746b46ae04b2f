import { resolve } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';

/** The baseline's worker, in its own process like the service's. Notifies its parent of each workflow that is nearly done. */
Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
const address = process.argv[2] ?? '127.0.0.1:7233';
const workflowBundle = await bundleWorkflowCode({
  workflowsPath: resolve(import.meta.dirname, 'workflows', 'bare.workflow.ts'),
  logger: new DefaultLogger('ERROR'),
});
const connection = await NativeConnection.connect({ address });
const worker = await Worker.create({
  connection,
  taskQueue: 'bare',
  workflowBundle,
  activities: {
    nothing: async () => {
      process.send?.('ran');
    },
    report: async () => {
      process.send?.('ran');
    },
  },
  workflowTaskPollerBehavior: { type: 'autoscaling', initial: 4 },
  activityTaskPollerBehavior: { type: 'autoscaling', initial: 4 },
  maxConcurrentActivityTaskExecutions: 50,
});
process.once('SIGTERM', () => worker.shutdown());
process.send?.('ready');
await worker.run();
await connection.close();
