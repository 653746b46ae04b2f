import { startSubmissionSmtp } from './submission-listener.ts';
import { runWorkerProcess } from './worker-process.ts';

await runWorkerProcess('submission-smtp', { queues: [], listeners: [startSubmissionSmtp] });
