import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Client, WorkflowNotFoundError } from '@temporalio/client';
import nodemailer, { type SendMailOptions } from 'nodemailer';
import { Webhook } from 'standardwebhooks';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { sharedService } from '../support/service.ts';
import { connectToTemporal } from '../support/temporal-connection.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const service = sharedService();
const call: Call = apiClient(service, service.api_key);
const TIMEOUT_MS = 30_000;

jest.setTimeout(60_000);

async function createInbox(displayName = 'Agent') {
  const { status, body } = await call('POST', '/inboxes', { display_name: displayName });
  expect(status).toBe(201);
  return body;
}

async function untilStatus(messageId: string, status: string) {
  return eventually(async () => {
    const { body } = await call('GET', `/messages/${messageId}`);
    expect(body.status).toBe(status);
    return body;
  }, TIMEOUT_MS);
}

async function deliver(to: string, mail: SendMailOptions): Promise<void> {
  const transport = nodemailer.createTransport({ ...service.inbound_smtp, secure: false, ignoreTLS: true });
  await transport.sendMail({ from: 'Ada <ada@people.example>', to, ...mail });
  transport.close();
}

async function received(inboxId: string, subject: string) {
  return eventually(async () => {
    const { body } = await call('GET', `/inboxes/${inboxId}/messages?direction=inbound`);
    const found = body.data.find((message) => message.subject === subject);
    expect(found).toBeDefined();
    return (await call('GET', `/messages/${found?.id}`)).body;
  }, TIMEOUT_MS);
}

async function eventsOf(receiver: WebhookReceiver, count: number): Promise<{ type: string; data: object }[]> {
  await eventually(() => expect(receiver.received).toHaveLength(count), TIMEOUT_MS);
  return receiver.received.map(({ body }) => JSON.parse(body));
}

let temporal: Client;
beforeAll(async () => {
  temporal = new Client({ connection: await connectToTemporal(service.temporal_address) });
});

describe('the main job', () => {
  test('inbox → draft → send → delivered → reply → thread, each with a signed webhook', async () => {
    const inbox = await createInbox();
    const receiver = new WebhookReceiver();
    await receiver.start();
    const endpoint = await call('POST', '/webhooks/endpoints', {
      url: receiver.url,
      events: ['message.sent', 'message.delivered', 'message.received'],
      inbox_ids: [inbox.id],
    });
    expect(endpoint.status).toBe(201);
    const draft = await call('POST', `/inboxes/${inbox.id}/drafts`, {
      to: [{ email: 'ada@people.example' }],
    });
    await call('PATCH', `/drafts/${draft.body.id}`, { subject: 'Hello', text_body: 'Are you there?' });
    const sent = await call('POST', `/drafts/${draft.body.id}/send`);
    expect(sent.status).toBe(201);
    expect((await call('GET', `/drafts/${draft.body.id}`)).status).toBe(404);

    const delivered = await untilStatus(sent.body.id, 'delivered');
    expect(delivered.recipients).toEqual([
      expect.objectContaining({ email: 'ada@people.example', status: 'delivered' }),
    ]);

    await deliver(inbox.email, {
      subject: 'Re: Hello',
      inReplyTo: `<${delivered.rfc_message_id}>`,
      text: 'I am.\n\nOn Sat, Nov 21, 2026 at 9:00 AM Agent wrote:\n> Are you there?\n',
      attachments: [{ filename: 'naïve 文.txt', content: 'file' }],
    });
    const reply = await received(inbox.id, 'Re: Hello');
    expect(reply).toMatchObject({
      thread_id: sent.body.thread_id,
      extracted_text: 'I am.',
      has_attachments: true,
    });
    const thread = await call('GET', `/threads/${sent.body.thread_id}`);
    expect(thread.body.message_count).toBe(2);

    const events = await eventsOf(receiver, 3);
    const verifier = new Webhook(endpoint.body.secret);
    for (const { body, headers } of receiver.received)
      verifier.verify(body, headers as Record<string, string>);
    expect(events.map(({ type }) => type).sort()).toEqual([
      'message.delivered',
      'message.received',
      'message.sent',
    ]);
    await receiver.stop();
  });

  test('costs at most 30 history events for a delivered message without subscribers', async () => {
    const inbox = await createInbox();
    async function countEvents(): Promise<number> {
      const sent = await call('POST', `/inboxes/${inbox.id}/messages`, {
        to: [{ email: 'ada@people.example' }],
        text_body: 'Count me.',
      });
      await untilStatus(sent.body.id, 'delivered');
      const lengths = await eventually(async () => {
        const runs = [`send/${sent.body.id}`, `delivery/${sent.body.id}`].map((id) =>
          temporal.workflow.getHandle(id),
        );
        const described = await Promise.all(
          runs.map((run) =>
            run.describe().catch((error: unknown) => {
              // If the report arrives before the send is recorded, there is nothing to track and no run starts.
              if (error instanceof WorkflowNotFoundError && run.workflowId.startsWith('delivery/'))
                return null;
              throw error;
            }),
          ),
        );
        for (const run of described) if (run) expect(run.status.name).toBe('COMPLETED');
        return described.map((run) => run?.historyLength ?? 0);
      }, TIMEOUT_MS);
      return lengths.reduce((sum, length) => sum + length, 0);
    }
    let fewest = Number.POSITIVE_INFINITY;
    // On a busy machine, a workflow task may take longer than its timeout, and is repeated.
    for (let tries = 0; tries < 3 && fewest > 30; tries += 1) fewest = Math.min(fewest, await countEvents());
    expect(fewest).toBeLessThanOrEqual(30);
  });

  test('a bounce report that arrives by SMTP emits an event with the specified data', async () => {
    const inbox = await createInbox();
    const receiver = new WebhookReceiver();
    await receiver.start();
    await call('POST', '/webhook-endpoints', {
      url: receiver.url,
      events: ['message.bounced'],
      inbox_ids: [inbox.id],
    });
    const sent = await call('POST', `/inboxes/${inbox.id}/messages`, {
      to: [{ email: 'bounce+story@people.example' }, { email: 'ada@people.example' }],
      text_body: 'Half of this arrives.',
    });
    const bounced = await untilStatus(sent.body.id, 'bounced');
    await eventually(async () => {
      const { body } = await call('GET', `/messages/${sent.body.id}`);
      expect(body.recipients.map(({ status }) => status)).toEqual(['bounced', 'delivered']);
    }, TIMEOUT_MS);
    const [event] = await eventsOf(receiver, 1);
    expect(event?.data).toMatchObject({
      message_id: bounced.id,
      bounce_type: 'Permanent',
      bounce_sub_type: 'NoEmail',
      bounced_recipients: [{ email_address: 'bounce+story@people.example', status: '5.1.1' }],
    });
    await receiver.stop();
  });

  test('a refused recipient bounces immediately, and a deferred message can be canceled', async () => {
    const inbox = await createInbox();
    const refused = await call('POST', `/inboxes/${inbox.id}/messages`, {
      to: [{ email: 'reject+story@people.example' }],
      text_body: 'No.',
    });
    await untilStatus(refused.body.id, 'bounced');
    const deferred = await call('POST', `/inboxes/${inbox.id}/messages`, {
      to: [{ email: 'defer@people.example' }],
      text_body: 'Later.',
    });
    await untilStatus(deferred.body.id, 'deferred');
    expect((await call('POST', `/messages/${deferred.body.id}/cancel`)).status).toBe(200);
    await untilStatus(deferred.body.id, 'canceled');
    await eventually(async () => {
      const { status } = await temporal.workflow.getHandle(`send/${deferred.body.id}`).describe();
      expect(status.name).toBe('COMPLETED');
    }, TIMEOUT_MS);
  });

  test('a scheduled draft is sent at its time', async () => {
    const inbox = await createInbox();
    const draft = await call('POST', `/inboxes/${inbox.id}/drafts`, {
      to: [{ email: 'ada@people.example' }],
      subject: 'Scheduled',
      text_body: 'On time.',
      send_at: new Date(Date.now() + 1_500).toISOString(),
    });
    expect(draft.body.send_status).toBe('scheduled');
    await eventually(async () => {
      const { body } = await call('GET', `/inboxes/${inbox.id}/messages?direction=outbound`);
      expect(body.data.map(({ subject }) => subject)).toEqual(['Scheduled']);
    }, TIMEOUT_MS);
    expect((await call('GET', `/drafts/${draft.body.id}`)).status).toBe(404);
  });

  test('a new send time right after the first reaches the run in any order; an unscheduled draft leaves no run', async () => {
    const inbox = await createInbox();
    const plan = async (index: number) => {
      const { body } = await call('POST', `/inboxes/${inbox.id}/drafts`, {
        to: [{ email: 'ada@people.example' }],
        subject: `Replanned ${index}`,
        send_at: '2099-01-01T00:00:00.000Z',
      });
      const soon = new Date(Date.now() + 1_000).toISOString();
      const patched = await call('PATCH', `/drafts/${body.id}`, { send_at: index % 2 === 0 ? soon : null });
      expect(patched.status).toBe(200);
      return body.id;
    };
    const ids = await Promise.all(Array.from({ length: 12 }, (_, index) => plan(index)));
    await eventually(async () => {
      const { body } = await call('GET', `/inboxes/${inbox.id}/messages?direction=outbound`);
      expect(body.data).toHaveLength(6);
      const runs = await Promise.all(
        ids.map((id) => temporal.workflow.getHandle(`scheduled/${id}/1`).describe()),
      );
      expect(runs.map(({ status }) => status.name)).toEqual(ids.map(() => 'COMPLETED'));
    }, TIMEOUT_MS);
  });

  test('mail from a sandbox is not sent', async () => {
    const environments = await call('GET', '/org/environments');
    const sandbox = environments.body.data.find(({ name }) => name === 'sandbox');
    const inSandbox = { 'x-env-id': String(sandbox?.id) };
    const inbox = await call('POST', '/inboxes', { display_name: 'Sandbox' }, inSandbox);
    const sent = await call(
      'POST',
      `/inboxes/${inbox.body.id}/messages`,
      { to: [{ email: 'nobody-in-the-sandbox@people.example' }], text_body: 'Stay.' },
      inSandbox,
    );
    await eventually(async () => {
      const { body } = await call('GET', `/messages/${sent.body.id}`, undefined, inSandbox);
      expect(body.status).toBe('delivered');
    }, TIMEOUT_MS);
    const left = await (await fetch(`${service.mail_ui}/api/email`)).text();
    expect(left).not.toContain('nobody-in-the-sandbox');
    expect(left).toContain('ada@people.example');
  });

  test.each([
    {
      what: 'a body in an unknown charset and broken base64',
      body: '--x\r\nContent-Type: text/plain; charset="no-such"\r\nContent-Transfer-Encoding: base64\r\n\r\n\u0000\u0001!!!',
      parseError: null,
    },
    {
      what: 'more parts than are read',
      body: '--x\r\n\r\n'.repeat(1_000),
      parseError: expect.stringContaining('more than 900 parts'),
    },
  ])('stores and announces a message with $what', async ({ body, parseError }) => {
    const inbox = await createInbox();
    const raw = `From: ada@people.example\r\nTo: ${inbox.email}\r\nSubject: Broken\r\nContent-Type: multipart/mixed; boundary="x"\r\n\r\n${body}`;
    await deliver(inbox.email, { raw, envelope: { from: 'ada@people.example', to: inbox.email } });
    const message = await received(inbox.id, 'Broken');
    expect(message).toMatchObject({ status: 'received', subject: 'Broken', parse_error: parseError });
    const link = await call('GET', `/messages/${message.id}/raw`);
    const stored = await (await fetch(String(link.body.download_url))).text();
    expect(stored.trimEnd().endsWith(raw.trimEnd())).toBe(true);
    const events = await call('GET', `/events?type=message.received&inbox_id=${inbox.id}`);
    expect(events.body.data.map(({ data }) => data)).toMatchObject([
      { message_id: message.id, subject: 'Broken' },
    ]);
  });
});
