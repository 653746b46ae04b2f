import { createHash, randomBytes } from 'node:crypto';
import { expect, jest, test } from '@jest/globals';
import { simpleParser } from 'mailparser';
import { type Answer, apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { sharedService } from '../support/service.ts';

const service = sharedService();
const call: Call = apiClient(service, service.api_key);
const TIMEOUT_MS = 40_000;

jest.setTimeout(120_000);

async function createInbox(): Promise<Answer> {
  const { status, body } = await call('POST', '/inboxes', {});
  expect(status).toBe(201);
  return body;
}

async function received(inbox: Answer, subject: string): Promise<Answer> {
  return eventually(async () => {
    const { body } = await call('GET', `/inboxes/${inbox.id}/messages?direction=inbound`);
    const found = body.data.find((message) => message.subject === subject);
    expect(found).toBeDefined();
    return (await call('GET', `/messages/${found?.id}`)).body;
  }, TIMEOUT_MS);
}

/** The files by name, downloaded without a credential. */
async function download(message: Answer): Promise<Map<string, Buffer>> {
  const files = await Promise.all(
    message.attachment_ids.map(async (id): Promise<[string, Buffer]> => {
      const { body } = await call('GET', `/attachments/${id}`);
      const bytes = Buffer.from(await (await fetch(String(body.download_url))).arrayBuffer());
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(body.sha256);
      return [String(body.filename), bytes];
    }),
  );
  return new Map(files);
}

test('attachments arrive byte for byte (upload → draft → send), and are forwarded and replied to with names in any language', async () => {
  const [sender, receiver] = await Promise.all([createInbox(), createInbox()]);
  const big = randomBytes(3 * 1024 * 1024);
  const logo = randomBytes(500);
  const form = new FormData();
  form.append('file', new Blob([big], { type: 'application/pdf' }), 'Größenübersicht 請求書.pdf');
  const upload = await fetch(`${service.base_url}/api/v1/inboxes/${sender.id}/attachments`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.api_key}` },
    body: form,
  });
  expect(upload.status).toBe(201);
  const { id: attachmentId } = (await upload.json()) as Answer;

  const draft = await call('POST', `/inboxes/${sender.id}/drafts`, {
    to: [{ email: receiver.email }],
    subject: 'Files',
    text_body: 'Here they are.',
    html_body: '<p>Here they are. <img src="cid:logo@x" alt="Logo"></p>',
    attachments: [
      { attachment_id: attachmentId },
      {
        filename: 'ロゴ.png',
        content_type: 'image/png',
        content: logo.toString('base64'),
        content_id: 'logo@x',
      },
    ],
  });
  expect(draft.status).toBe(201);
  const sent = await call('POST', `/drafts/${draft.body.id}/send`);
  expect(sent.status).toBe(201);

  const mail = await received(receiver, 'Files');
  const files = new Map([
    ['Größenübersicht 請求書.pdf', big],
    ['ロゴ.png', logo],
  ]);
  expect(mail.has_attachments).toBe(true);
  expectSame(await download(mail), files);

  const raw = await call('GET', `/messages/${sent.body.id}/raw`);
  expect(raw.status).toBe(200);
  const source = Buffer.from(await (await fetch(String(raw.body.download_url))).arrayBuffer());
  expect(source).toHaveLength(Number(raw.body.size_bytes));
  const { attachments } = await simpleParser(source, { skipImageLinks: true });
  expect(attachments.find(({ cid }) => cid === 'logo@x')?.content.equals(logo)).toBe(true);

  const forward = await call('POST', `/messages/${mail.id}/forward`, {
    to: [{ email: sender.email }],
    text_body: 'For you.',
  });
  expect(forward.status).toBe(201);
  const forwarded = await received(sender, 'Fwd: Files');
  expect(forwarded.thread_id).not.toBe(sent.body.thread_id);
  expect(forwarded.text_body).toContain('Forwarded message');
  expect(forwarded.html_body).toContain('cid:logo@x');
  expectSame(await download(forwarded), files);

  const reply = await call('POST', `/messages/${mail.id}/reply`, { text_body: 'Thank you.' });
  expect(reply.status).toBe(201);
  expect(reply.body.thread_id).toBe(mail.thread_id);
  expect(await received(sender, 'Re: Files')).toMatchObject({
    thread_id: sent.body.thread_id,
    extracted_text: 'Thank you.',
  });
});

function expectSame(found: Map<string, Buffer>, expected: Map<string, Buffer>): void {
  expect([...found.keys()].sort()).toEqual([...expected.keys()].sort());
  for (const [name, bytes] of expected) expect(found.get(name)?.equals(bytes)).toBe(true);
}
