import { MAIL_QUEUE, MAINTENANCE_QUEUE, WEBHOOKS_QUEUE } from '../workflows/task-queues.contract.ts';
import { startInboundSmtp } from './inbound-listener.ts';
import { startSubmissionSmtp } from './submission-listener.ts';
import { runWorkerProcess } from './worker-process.ts';

/** Every queue and listener in one process: `npm start`, and installations that need no more. */
await runWorkerProcess('workers', {
  queues: [MAIL_QUEUE, WEBHOOKS_QUEUE, MAINTENANCE_QUEUE],
  listeners: [startInboundSmtp, startSubmissionSmtp],
});
