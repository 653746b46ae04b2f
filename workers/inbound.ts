import { INBOUND_QUEUE } from '../workflows/task-queues.contract.ts';
import { runWorkerProcess } from './worker-process.ts';

await runWorkerProcess('worker-inbound', { queues: [INBOUND_QUEUE] });
