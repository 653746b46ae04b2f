import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { RESOLVE_AMBIGUOUS } from '../../workflows/outbound/send-message.contract.ts';
import { apiClient, type Call, type Reply } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { type IsolatedService, startIsolatedService } from '../support/isolated-service.ts';
import { SlowRelay } from '../support/slow-relay.ts';

jest.setTimeout(180_000);
const TIMEOUT_MS = 90_000;
/** How often the worker is killed around the record of a transmission; KILL_ROUNDS=50 takes eight minutes. */
const KILL_ROUNDS = Number(process.env.KILL_ROUNDS ?? 1);

let service: IsolatedService;
let relay: SlowRelay;
let call: Call;
beforeAll(async () => {
  relay = new SlowRelay();
  service = await startIsolatedService({ SMTP_RELAY_PORT: String(await relay.start()) });
  call = apiClient({ base_url: service.baseUrl }, service.apiKey);
});
afterAll(async () => {
  await service?.stop();
  await relay?.stop();
});

async function sendOne(): Promise<string> {
  const inbox = await call('POST', '/inboxes', {});
  const { status, body } = await call('POST', `/inboxes/${inbox.body.id}/messages`, {
    to: [{ email: 'ada@people.example' }],
    text_body: 'Once.',
  });
  expect(status).toBe(201);
  return body.id;
}

const untilStatus = (id: string, status: string) =>
  eventually(async () => expect((await call('GET', `/messages/${id}`)).body.status).toBe(status), TIMEOUT_MS);

describe('SIGTERM under load', () => {
  const MESSAGES = 20;
  const accepted = (replies: { status: number; body: { id: string } }[]) =>
    replies.flatMap(({ status, body }) => (status === 201 ? [body.id] : []));

  test('lets a worker finish what it transmits: every message is sent once, and none needs attention', async () => {
    const inbox = await call('POST', '/inboxes', {});
    const before = relay.complete;
    relay.hold();
    const replies = await Promise.all(
      Array.from({ length: MESSAGES }, () =>
        call('POST', `/inboxes/${inbox.body.id}/messages`, {
          to: [{ email: 'ada@people.example' }, { email: 'bob@people.example' }],
          text_body: 'Once.',
        }),
      ),
    );
    const ids = accepted(replies);
    expect(ids).toHaveLength(MESSAGES);
    // The relay has some messages completely, and the worker waits for its replies.
    await eventually(() => expect(relay.complete).toBeGreaterThan(before), TIMEOUT_MS);
    const exited = service.shutDown('workers');
    relay.release();
    expect(await exited).toBe(0);
    await service.start('workers');
    for (const id of ids) await untilStatus(id, 'sent');
    expect(relay.complete).toBe(before + 2 * MESSAGES);
  });

  test('lets the API answer the requests it has accepted', async () => {
    const inbox = await call('POST', '/inboxes', {});
    const requests = Array.from({ length: MESSAGES }, (_, index) =>
      call(
        'POST',
        `/inboxes/${inbox.body.id}/messages`,
        { to: [{ email: 'ada@people.example' }], text_body: 'Once.' },
        { 'idempotency-key': `drained-${index}` },
      ).catch((error: unknown) => error),
    );
    // The first answers show that the others have arrived, too.
    await Promise.race(requests);
    expect(await service.shutDown('api')).toBe(0);
    const replies = await Promise.all(requests);
    await service.start('api');
    // A refusal on a connection that was already open is 503: the client repeats.
    const statuses = replies.map((reply) => (reply instanceof Error ? 'no answer' : (reply as Reply).status));
    expect(new Set(statuses)).not.toContain('no answer');
    const ids = accepted(replies as Reply[]);
    expect(ids.length).toBeGreaterThan(0);
    for (const id of ids) await untilStatus(id, 'sent');
    const { body } = await call('GET', `/inboxes/${inbox.body.id}/messages?limit=100`);
    expect(body.data.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  });
});

describe('a crash', () => {
  test('of the API after its commit starts the run, and the client’s retry returns the same message', async () => {
    const inbox = await call('POST', '/inboxes', {});
    const request = () =>
      call(
        'POST',
        `/inboxes/${inbox.body.id}/messages`,
        { to: [{ email: 'ada@people.example' }], text_body: 'Once.' },
        { 'idempotency-key': 'the-same' },
      );
    const first = await request();
    await service.kill('api');
    await service.start('api');
    const second = await request();
    expect(second.body.id).toBe(first.body.id);
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    await untilStatus(first.body.id, 'sent');
  });

  test('of the worker before it started sends the message once, later', async () => {
    const before = relay.complete;
    await service.kill('workers');
    const id = await sendOne();
    await service.start('workers');
    await untilStatus(id, 'sent');
    expect(relay.complete).toBe(before + 1);
  });

  test('of the worker between the relay’s acceptance and the record sets needs_attention and never sends twice', async () => {
    relay.hold();
    const before = relay.complete;
    const id = await sendOne();
    await eventually(() => expect(relay.complete).toBe(before + 1), TIMEOUT_MS);
    await service.kill('workers');
    relay.release();
    await service.start('workers');
    await untilStatus(id, 'needs_attention');
    expect(relay.complete).toBe(before + 1);

    const temporal = await service.connectToTemporal();
    const run = temporal.workflow.getHandle(`send/${id}`);
    await eventually(
      async () => expect((await run.describe()).searchAttributes.Stage).toEqual(['needs_attention']),
      TIMEOUT_MS,
    );
    await run.executeUpdate(RESOLVE_AMBIGUOUS, { args: ['sent'] });
    await untilStatus(id, 'sent');
    expect(relay.complete).toBe(before + 1);
    await temporal.connection.close();
  });

  test(
    'of the worker at any moment around the record of a transmission never sends twice',
    async () => {
      const ended: Record<string, number> = {};
      for (let round = 0; round < KILL_ROUNDS; round += 1) {
        relay.hold();
        const before = relay.complete;
        const id = await sendOne();
        await eventually(() => expect(relay.complete).toBe(before + 1), TIMEOUT_MS);
        relay.release();
        // The reply arrives, its result is recorded, the activity completes, the run ends.
        await sleep((round * 7) % 50);
        await service.kill('workers');
        await service.start('workers');
        await eventually(async () => {
          const { status } = (await call('GET', `/messages/${id}`)).body;
          expect(['sent', 'needs_attention']).toContain(status);
          ended[status] = (ended[status] ?? 0) + 1;
        }, TIMEOUT_MS);
        expect(relay.complete).toBe(before + 1);
      }
      if (KILL_ROUNDS > 1) process.stdout.write(`${JSON.stringify(ended)}\n`);
    },
    60_000 + KILL_ROUNDS * 60_000,
  );
});
