import { yieldCpu } from '../platform/cpu-priority.ts';
import { startInboundSmtp } from './inbound-listener.ts';
import { runWorkerProcess } from './worker-process.ts';

yieldCpu();
await runWorkerProcess('inbound-smtp', { queues: [], listeners: [startInboundSmtp] });
