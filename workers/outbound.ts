import { OUTBOUND_QUEUE } from '../workflows/task-queues.contract.ts';
import { runWorkerProcess } from './worker-process.ts';

await runWorkerProcess('worker-outbound', { queues: [OUTBOUND_QUEUE] });
