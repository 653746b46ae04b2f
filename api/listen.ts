import { type AddressInfo, createServer, type Server } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Node accepts one connection in each turn of its event loop, however many wait (libuv does so since 1.46), and answers all
 * open connections in the same turn. Beside many busy connections, new ones would wait for seconds. Each of these accepts one
 * more in each turn. Other systems than Linux do not distribute connections among the sockets of a port.
 */
const MORE_ACCEPTORS = process.platform === 'linux' ? 15 : 0;

const IDLE_CHECK_MS = 100;

export interface ListenOptions {
  host: string;
  port: number;
}

export interface Listening {
  /** The bound port. */
  port: number;
  /** Accepts no more connections, completes the requests in progress, then closes every connection and the app. */
  close(): Promise<void>;
}

/**
 * Listens with several sockets of one port.
 *
 * @throws Error with the code `EADDRINUSE` if another process listens at the port.
 */
export async function listen(app: FastifyInstance, { host, port }: ListenOptions): Promise<Listening> {
  const acceptors = Array.from({ length: MORE_ACCEPTORS }, () =>
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => app.server.emit('connection', socket)),
  );
  // With `reusePort`, a second process could share the port.
  await requireFree(host, port);
  const reusePort = MORE_ACCEPTORS > 0;
  await app.listen({ host, port, ...(reusePort ? { reusePort } : {}) });
  const { port: bound } = app.server.address() as AddressInfo;
  await Promise.all(acceptors.map((acceptor) => bind(acceptor, { host, port: bound, reusePort })));
  return {
    port: bound,
    async close() {
      // Node closes idle connections once; those whose request ends later would stay open for the client's next one.
      const closing = setInterval(() => app.server.closeIdleConnections(), IDLE_CHECK_MS);
      await Promise.all([...acceptors.map(close), app.close()]).finally(() => clearInterval(closing));
    },
  };
}

async function requireFree(host: string, port: number): Promise<void> {
  if (port === 0) return;
  const probe = createServer();
  await bind(probe, { host, port });
  await close(probe);
}

const bind = (server: Server, options: ListenOptions & { reusePort?: boolean }) =>
  new Promise<void>((done, fail) => server.once('error', fail).listen(options, done));

const close = (server: Server) => new Promise<void>((done) => server.close(() => done()));
