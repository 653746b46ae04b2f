import { expect, jest, test } from '@jest/globals';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { sharedService } from '../support/service.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const service = sharedService();
const call: Call = apiClient(service, service.api_key);
const TIMEOUT_MS = 30_000;

jest.setTimeout(60_000);

/** The development relay reports complaints like a mailbox provider, to the registered address. */
test('a complaint emits an event and suppresses the recipient until the suppression is deleted', async () => {
  const reader = `complain+${Date.now()}@people.example`;
  const inbox = (await call('POST', '/inboxes', { display_name: 'Agent' })).body;
  const receiver = new WebhookReceiver();
  await receiver.start();
  const events = ['message.complained', 'message.rejected'];
  await call('POST', '/webhooks/endpoints', { url: receiver.url, events, inbox_ids: [inbox.id] });
  const send = (...to: string[]) =>
    call('POST', `/inboxes/${inbox.id}/messages`, {
      to: to.map((email) => ({ email })),
      subject: 'Offer',
      text_body: 'Buy!',
    });
  const sent = await send('ada@people.example', reader);
  await eventually(async () => {
    const { body } = await call('GET', `/messages/${sent.body.id}`);
    expect(body.status).toBe('complained');
    expect(body.recipients.map(({ status }) => status)).toEqual(['delivered', 'complained']);
  }, TIMEOUT_MS);
  const { body } = await call('GET', `/suppressions?email=${encodeURIComponent(reader)}`);
  expect(body.data).toMatchObject([{ email: reader, origin: 'complaint', message_id: sent.body.id }]);

  const refused = await send(reader);
  expect(refused.status).toBe(422);
  expect(refused.body).toMatchObject({ code: 'message_rejected', rejection_reason: 'blocked_recipient' });
  await eventually(() => expect(receiver.received).toHaveLength(2), TIMEOUT_MS);
  const webhooks = receiver.received.map((delivery) => JSON.parse(delivery.body));
  expect(webhooks.find(({ type }) => type === 'message.complained').data).toEqual({
    message_id: sent.body.id,
    inbox_id: inbox.id,
    complained_recipients: [reader],
    feedback_type: 'abuse',
    complained_at: expect.any(String),
  });
  expect(webhooks.find(({ type }) => type === 'message.rejected').data).toEqual({
    inbox_id: inbox.id,
    from_address: inbox.email,
    to_addresses: [reader],
    subject: 'Offer',
    rejection_reason: 'blocked_recipient',
    rejection_detail: expect.stringContaining(reader),
    rejected_at: expect.any(String),
  });
  expect((await call('DELETE', `/suppressions/${encodeURIComponent(reader)}`)).status).toBe(204);
  expect((await send(reader)).status).toBe(201);
  await receiver.stop();
});
