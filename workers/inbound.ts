import { yieldCpu } from '../platform/cpu-priority.ts';
import { INBOUND_QUEUE } from '../workflows/task-queues.contract.ts';
import { runWorkerProcess } from './worker-process.ts';

yieldCpu();
await runWorkerProcess('worker-inbound', { queues: [INBOUND_QUEUE] });
