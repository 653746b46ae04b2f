import { startInboundSmtp } from './inbound-listener.ts';
import { runWorkerProcess } from './worker-process.ts';

await runWorkerProcess('inbound-smtp', { queues: [], listeners: [startInboundSmtp] });
