import { MAIL_QUEUE } from '../workflows/task-queues.contract.ts';
import { runWorkerProcess } from './worker-process.ts';

await runWorkerProcess('worker-mail', { queues: [MAIL_QUEUE] });
