import { expect, jest, test } from '@jest/globals';
import { Client } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { apiClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { sharedService } from '../support/service.ts';
import { connectToTemporal } from '../support/temporal-connection.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(60_000);
const TIMEOUT_MS = 30_000;
const service = sharedService();
const call = apiClient(service, service.api_key);

interface ShownMail {
  subject: string;
  text: string;
  html: string;
  headers: Record<string, string>;
  from: { address: string }[];
  to: { address: string }[];
  envelope: { from: { address: string } | string };
}

async function mailsAbout(word: string): Promise<ShownMail[]> {
  const mails = (await (await fetch(`${service.mail_ui}/api/email`)).json()) as ShownMail[];
  return mails.filter(({ text }) => text?.includes(word));
}

test('disables the endpoint of a receiver that is gone and sends the owner one email', async () => {
  const receiver = new WebhookReceiver();
  receiver.answerWith((_request, response) => response.writeHead(410).end());
  const inbox = (await call('POST', '/inboxes', {})).body;
  await call('POST', '/lists/send/block', { entry: 'blocked.example', inbox_id: inbox.id });
  const endpoint = await call('POST', '/webhooks/endpoints', {
    url: await receiver.start(),
    events: ['message.rejected'],
    inbox_ids: [inbox.id],
  });
  const refused = { to: [{ email: 'ada@blocked.example' }], text_body: 'No.' };
  await Promise.all([1, 2, 3].map(() => call('POST', `/inboxes/${inbox.id}/messages`, refused)));

  const [mail] = await eventually(async () => {
    const mails = await mailsAbout(endpoint.body.id);
    expect(mails).toHaveLength(1);
    return mails;
  }, TIMEOUT_MS);
  expect(mail?.to).toMatchObject([{ address: service.owner.email }]);
  expect(mail?.subject).toBe(`Webhook endpoint disabled: ${new URL(receiver.url).host}`);
  expect(mail?.headers['auto-submitted']).toBe('auto-generated');
  expect(mail?.html).toContain(endpoint.body.id);
  expect(mail?.text).toContain('410 Gone');
  const { body } = await call('GET', `/webhooks/endpoints/${endpoint.body.id}`);
  expect(body).toMatchObject({ disabled: true, disabled_reason: 'The receiver responded with 410 Gone.' });
  await historiesHoldIdsAlone();
  await receiver.stop();
});

async function historiesHoldIdsAlone(): Promise<void> {
  const connection = await connectToTemporal(service.temporal_address);
  const { workflow } = new Client({ connection });
  const runs = await eventually(async () => {
    const found = [];
    for await (const run of workflow.list({ query: `WorkflowType = 'sendNotification'` })) found.push(run);
    expect(found.length).toBeGreaterThan(0);
    return found;
  }, TIMEOUT_MS);
  for (const { workflowId } of runs) {
    const history = historyToJSON(await workflow.getHandle(workflowId).fetchHistory());
    const payloads = Buffer.from(history).toString();
    expect(payloads).not.toContain(service.owner.email);
    expect(payloads).not.toContain(Buffer.from(service.owner.email).toString('base64').slice(0, 16));
  }
  await connection.close();
}
