import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { sharedService } from '../support/service.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(90_000);

const service = sharedService();
const call: Call = apiClient(service, service.api_key);
const receiver = new WebhookReceiver();
/** Other files send from the same organization. */
let inbox: { id: string };
let endpoint: { id: string; secret: string };
let path: string;

beforeAll(async () => {
  await receiver.start();
  inbox = (await call('POST', '/inboxes', {})).body;
  const created = await call('POST', '/webhooks/endpoints', {
    url: receiver.url,
    events: ['message.sent', 'usage.exceeded'],
    inbox_ids: [inbox.id],
  });
  endpoint = created.body;
  path = `/webhooks/endpoints/${endpoint.id}`;
});
afterAll(async () => {
  await call('DELETE', path);
  await receiver.stop();
});

const verify = (secret: string, index: number) => {
  const { body = '', headers } = receiver.received[index] ?? {};
  return new Webhook(secret).verify(body, headers as Record<string, string>) as { id: string; type: string };
};
const arrived = (count: number) => eventually(() => expect(receiver.received).toHaveLength(count), 30_000);
const settled = (id: string, status: string) =>
  eventually(async () => {
    const { body } = await call('GET', `/webhooks/deliveries/${id}`);
    expect(body).toMatchObject({ status });
    return body as unknown as { attempts: { status_code: number }[] };
  }, 30_000);

test('a test event is marked as such, and keeps its id when it is retried', async () => {
  receiver.answerWith((_request, response, attempt) =>
    response.writeHead(attempt === 1 ? 500 : 200).end('noted'),
  );
  const { status, body: delivery } = await call('POST', `${path}/test`, { event_type: 'usage.exceeded' });
  expect(status).toBe(202);
  await arrived(1);
  // The schedule would wait 5 s.
  expect((await call('POST', `/webhooks/deliveries/${delivery.id}/retry`)).status).toBe(202);
  await settled(delivery.id, 'delivered');
  expect((await call('POST', `/webhooks/deliveries/${delivery.id}/retry`)).status).toBe(202);
  await arrived(3);
  const { attempts } = await settled(delivery.id, 'delivered');
  expect(attempts.map(({ status_code }) => status_code)).toEqual([500, 200, 200]);
  for (const index of [0, 1, 2]) {
    expect(verify(endpoint.secret, index)).toMatchObject({ id: delivery.event_id, type: 'usage.exceeded' });
    expect(receiver.received[index]?.headers['x-service-test']).toBe('true');
  }
});

test('a real event is replayed with its id and signed with both secrets of a rotation', async () => {
  const since = new Date().toISOString();
  const before = receiver.received.length;
  await call('POST', `/inboxes/${inbox.id}/messages`, {
    to: [{ email: 'ada@people.example' }],
    text_body: 'x',
  });
  await arrived(before + 1);
  const { body: rotated } = await call('POST', `${path}/rotate-secret`, { overlap_seconds: 600 });
  const { status, body: job } = await call('POST', `${path}/replay`, { since });
  expect(status).toBe(202);
  await arrived(before + 2);
  const first = verify(endpoint.secret, before);
  expect(verify(endpoint.secret, before + 1)).toEqual(first);
  expect(verify(rotated.secret, before + 1)).toEqual(first);
  expect(receiver.received[before + 1]?.headers['x-service-test']).toBeUndefined();
  await eventually(async () =>
    expect((await call('GET', `/webhooks/jobs/${job.id}`)).body).toMatchObject({
      status: 'completed',
      deliveries: 1,
    }),
  );
  const feed = await eventually(async () => {
    const { body } = await call('GET', `/events?order=asc&inbox_id=${inbox.id}`);
    expect(body.data.length).toBeGreaterThan(0);
    return body;
  });
  expect(feed.data).toContainEqual(first);
});

test('pending deliveries of a failing endpoint are canceled immediately, with their runs', async () => {
  receiver.answerWith((_request, response) => response.writeHead(503).end());
  const before = receiver.received.length;
  const { body: delivery } = await call('POST', `${path}/test`, {});
  await arrived(before + 1);
  const { body: job } = await call('POST', `${path}/cancel-pending`);
  await settled(delivery.id, 'canceled');
  await eventually(async () =>
    expect((await call('GET', `/webhooks/jobs/${job.id}`)).body).toMatchObject({
      status: 'completed',
      kind: 'cancel',
    }),
  );
});
