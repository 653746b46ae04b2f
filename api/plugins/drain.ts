import type { FastifyInstance } from 'fastify';

const SWEEP_INTERVAL_MS = 100;

/**
 * Closes kept-alive connections on shutdown as soon as their response is sent. Node closes only those that are idle when the
 * server stops listening; any other would keep the process until its client disconnects.
 */
export function installDrain(app: FastifyInstance): void {
  let sweep: NodeJS.Timeout | undefined;
  app.addHook('preClose', async () => {
    sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_INTERVAL_MS);
  });
  app.addHook('onSend', async (_request, reply) => {
    // The client must not send its next request on this connection.
    if (sweep) reply.header('connection', 'close');
  });
  app.addHook('onClose', async () => clearInterval(sweep));
}
