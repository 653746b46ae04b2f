import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { RESOLVE_AMBIGUOUS } from '../../workflows/outbound/send-message.contract.ts';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { type IsolatedService, startIsolatedService } from '../support/isolated-service.ts';
import { SlowRelay } from '../support/slow-relay.ts';

jest.setTimeout(180_000);
const TIMEOUT_MS = 90_000;

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

    const temporal = new Client({
      connection: await Connection.connect({ address: service.temporalAddress }),
    });
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
});
