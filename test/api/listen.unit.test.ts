import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import Fastify, { type FastifyInstance } from 'fastify';
import { listen } from '../../api/listen.ts';
import { eventually } from '../support/eventually.ts';

const HOST = '127.0.0.1';
const CONNECTIONS = 128;
/** For the kernel to complete the handshakes, while this process cannot accept. */
const BUSY_MS = 200;

const start = (app: FastifyInstance) => listen(app, { host: HOST, port: 0 });

test('connections that wait are accepted several in a turn of the event loop', async () => {
  const app = Fastify();
  const { port, close } = await start(app);
  let turns = 0;
  let counts: NodeJS.Immediate | undefined;
  const countTurn = () => {
    turns += 1;
    counts = setImmediate(countTurn);
  };
  const acceptedIn: number[] = [];
  app.server.on('connection', () => acceptedIn.push(turns));
  const clients = Array.from({ length: CONNECTIONS }, () => connect(port, HOST));
  for (const end = performance.now() + BUSY_MS; performance.now() < end; );
  countTurn();
  await eventually(() => expect(acceptedIn).toHaveLength(CONNECTIONS));
  clearImmediate(counts);
  const usedTurns = new Set(acceptedIn).size;
  if (process.platform === 'linux') expect(usedTurns).toBeLessThan(CONNECTIONS / 2);
  for (const client of clients) client.destroy();
  await close();
});

test('a second process cannot listen at the same port', async () => {
  const first = await start(Fastify());
  await expect(listen(Fastify(), { host: HOST, port: first.port })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
  await first.close();
});

test('closing completes requests in progress, and accepts no more connections', async () => {
  const { promise: end, resolve } = Promise.withResolvers<string>();
  const app = Fastify({ forceCloseConnections: 'idle' });
  let inProgress = 0;
  app.get('/slow', () => {
    inProgress += 1;
    return end;
  });
  const { port, close } = await start(app);
  const requests = Array.from({ length: 40 }, () => fetch(`http://${HOST}:${port}/slow`));
  const idle = connect(port, HOST);
  await once(idle, 'connect');
  await eventually(() => expect(inProgress).toBe(requests.length));
  const closed = close();
  await expect(fetch(`http://${HOST}:${port}/slow`)).rejects.toThrow();
  resolve('done');
  for (const response of await Promise.all(requests)) expect(await response.text()).toBe('done');
  idle.destroy();
  await closed;
});
