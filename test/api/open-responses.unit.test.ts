import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { installOpenResponses, type OpenResponses } from '../../api/plugins/open-responses.ts';
import { unauthenticated } from '../../domain/identity/authentication.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import { eventually } from '../support/eventually.ts';

let app: FastifyInstance;
let openResponses: OpenResponses;
afterEach(() => app.close());

/** Starts an app whose route runs `beforeAdmission` and then stays open until its client disconnects. */
async function start(
  beforeAdmission: (socket: Socket) => Promise<unknown>,
  access: Partial<Pick<FastifyRequest, 'accessEndsAt' | 'recheckAccess'>> = {},
): Promise<Socket> {
  app = Fastify();
  openResponses = installOpenResponses(app, {
    accessSignals: { watch: () => () => undefined },
    perCredential: 3,
    perProcess: 3,
  });
  app.get('/', async (request, reply) => {
    request.scope = { actor: { id: 'key_1' } } as Scope;
    Object.assign(request, access);
    await beforeAdmission(request.raw.socket);
    const signal = openResponses.admit(request, reply);
    if (!signal.aborted) await once(signal, 'abort');
    return 'done';
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  await once(client, 'connect');
  return client;
}

const REQUEST = 'GET / HTTP/1.1\r\nhost: api.test\r\n\r\n';

test('a client that disconnected during authentication is not counted', async () => {
  const admitted = Promise.withResolvers<void>();
  const client = await start(async (socket) => {
    client.resetAndDestroy();
    if (!socket.destroyed) await once(socket, 'close').catch(() => undefined);
    setImmediate(admitted.resolve);
  });
  client.write(REQUEST);
  await admitted.promise;
  expect(openResponses.count).toBe(0);
});

test('pipelined requests end when their connection closes', async () => {
  const client = await start(async () => undefined);
  client.write(REQUEST.repeat(3));
  await eventually(() => expect(openResponses.count).toBe(3));
  client.destroy();
  await eventually(() => expect(openResponses.count).toBe(0));
});

test('a response ends with its credential, and follows a later end', async () => {
  const ends = [Date.now() + 300, Date.now() + 600];
  let checks = 0;
  const client = await start(async () => undefined, {
    accessEndsAt: new Date(Date.now() + 50),
    async recheckAccess(this: FastifyRequest) {
      checks += 1;
      const next = ends.shift();
      if (next === undefined) throw unauthenticated();
      this.accessEndsAt = new Date(next);
    },
  });
  client.write(REQUEST);
  await eventually(() => expect(checks).toBe(3));
  await eventually(() => expect(openResponses.count).toBe(0));
});

test('a response ends with its credential while nothing can be checked', async () => {
  const client = await start(async () => undefined, {
    accessEndsAt: new Date(Date.now() + 50),
    recheckAccess: () => Promise.reject(new Error('no connection')),
  });
  client.write(REQUEST);
  await eventually(() => expect(client.bytesRead).toBeGreaterThan(0));
  expect(openResponses.count).toBe(0);
});
