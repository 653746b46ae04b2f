import { WEBHOOKS_QUEUE } from '../workflows/task-queues.contract.ts';
import { runWorkerProcess } from './worker-process.ts';

await runWorkerProcess('worker-webhooks', { queues: [WEBHOOKS_QUEUE] });
