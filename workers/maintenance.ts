import { MAINTENANCE_QUEUE } from '../workflows/task-queues.contract.ts';
import { runWorkerProcess } from './worker-process.ts';

await runWorkerProcess('worker-maintenance', { queues: [MAINTENANCE_QUEUE] });
