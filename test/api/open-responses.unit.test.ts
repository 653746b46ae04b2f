import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { installOpenResponses, type OpenResponses, readRefusal } from '../../api/plugins/open-responses.ts';
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
  limits = { perCredential: 3, perProcess: 3 },
): Promise<Socket> {
  app = Fastify();
  openResponses = installOpenResponses(app, {
    accessSignals: { watch: () => () => undefined },
    ...limits,
  });
  app.get('/', async (request, reply) => {
    const { key = 'key_1', org = 'org_1' } = request.query as { key?: string; org?: string };
    request.scope = { actor: { id: key }, organizationId: org } as Scope;
    reply.header('x-key', key);
    Object.assign(request, access);
    await beforeAdmission(request.raw.socket);
    const signal = openResponses.admit(request, reply);
    if (!signal.aborted) await once(signal, 'abort');
    const refusal = readRefusal(signal);
    return reply.code(refusal?.status ?? 200).send(refusal?.detail ?? 'done');
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

describe('one organization with many keys', () => {
  const limits = { perCredential: 4, perProcess: 9 };
  const openByKey = (key: string, org: string) =>
    fetch(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/?key=${key}&org=${org}`);

  test('has all responses of a process while no other needs one, and gives the newest back to one that does', async () => {
    const client = await start(async () => undefined, {}, limits);
    client.destroy();
    const ended: { key: string; status: number }[] = [];
    const greedy = Array.from({ length: 9 }, (_, index) => `key_${Math.floor(index / 4)}`);
    for (const [index, key] of greedy.entries()) {
      void openByKey(key, 'org_greedy').then(({ status }) => ended.push({ key, status }));
      await eventually(() => expect(openResponses.count).toBe(index + 1));
    }
    expect((await openByKey('key_9', 'org_greedy')).status).toBe(429);

    for (const key of ['other_1', 'other_2', 'other_3'])
      void openByKey(key, 'org_other')
        .then(({ status }) => ended.push({ key, status }))
        .catch(() => undefined);
    await eventually(() => expect(ended).toHaveLength(3));
    expect(ended).toEqual([
      { key: 'key_2', status: 429 },
      { key: 'key_1', status: 429 },
      { key: 'key_1', status: 429 },
    ]);
    expect(openResponses.count).toBe(9);
    // With a third, the other organization gets no more.
    expect((await openByKey('other_4', 'org_other')).status).toBe(429);
  });

  test('cannot hold a place by a response that cannot be written', async () => {
    const client = await start(async () => undefined, {}, { perCredential: 4, perProcess: 4 });
    client.write(REQUEST.repeat(4));
    await eventually(() => expect(openResponses.count).toBe(4));
    void openByKey('other_1', 'org_other').catch(() => undefined);
    // The newest of the pipelined responses has to wait for the others, so that their connection ends.
    await eventually(() => expect(client.destroyed).toBe(true));
    await eventually(() => expect(openResponses.count).toBe(1));
  });
});
