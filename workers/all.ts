import { TASK_QUEUES } from '../workflows/task-queues.contract.ts';
import { startInboundSmtp } from './inbound-listener.ts';
import { startSubmissionSmtp } from './submission-listener.ts';
import { runWorkerProcess } from './worker-process.ts';

/** Every queue and listener in one process, for `npm start` and small installations. */
await runWorkerProcess('workers', {
  queues: TASK_QUEUES,
  listeners: [startInboundSmtp, startSubmissionSmtp],
});
