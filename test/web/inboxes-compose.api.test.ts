import { describe, expect, test } from '@jest/globals';
import type { MemberRole } from '../../domain/identity/roles.ts';
import { formCall } from '../support/form.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const s3 = useObjectStorage();
const app = useTestApp(() => ({ config: { TRUST_PROXY: '127.0.0.1', ...s3.environment } }));

interface Sent {
  id: string;
  subject: string;
  text_body: string;
  to_addresses: string[];
  thread_id: string;
  status: string;
}

async function arrange(role: MemberRole = 'developer') {
  const organization = await createOrganization(app.worker);
  const { organizationId, token } = organization;
  const { inbox, receive } = await arrangeInbox(app.worker, {}, await createInbox(app.worker, organization));
  const userId = await createTestUser(app.worker, { organizationId, role });
  const browser = createPageClient(app);
  browser.cookies.set('session', (await createTestSession(app.worker, userId)).token);
  const get = async <Body>(path: string) => (await app.call(path, { token })).json<Body>();
  const listSent = async () =>
    (await get<{ data: Sent[] }>(`/inboxes/${inbox.id}/messages?direction=outbound&view=full`)).data;
  const compose = `/inboxes/${inbox.id}/compose`;
  const idOf = () => /(?:msg|drf)_\w+/.exec(browser.path)?.[0] ?? '';
  return { organization, inbox, receive, browser, get, listSent, compose, idOf, token };
}

const EMPTY = {
  action: 'send',
  cc: '',
  bcc: '',
  reply_to: '',
  subject: '',
  labels: '',
  send_at: '',
};
const HELLO = { ...EMPTY, to: 'ada@people.example', subject: 'Hello', text_body: 'Hello, Ada.' };
const file = (filename: string, content: string) => ({
  name: 'files',
  filename,
  contentType: 'text/plain',
  content,
});
const NO_FILE = { name: 'files', filename: '', contentType: 'application/octet-stream', content: '' };

describe('a new message', () => {
  test('is sent with names, copies, labels and files', async () => {
    const { browser, compose, get, idOf } = await arrange();
    await browser.open(compose);
    await browser.submitFiles(
      compose,
      {
        ...HELLO,
        to: '"Lovelace, Ada" <ada@people.example>; bob@people.example',
        cc: 'eve@people.example',
        labels: 'offer, first contact',
      },
      [file('offer.txt', 'The offer'), NO_FILE],
    );
    expect(browser.path).toMatch(/^\/messages\/msg_\w+\?notice=message-queued$/);
    expect(await get(`/messages/${idOf()}`)).toMatchObject({
      to: [{ email: 'ada@people.example', name: 'Lovelace, Ada' }, { email: 'bob@people.example' }],
      cc: [{ email: 'eve@people.example' }],
      subject: 'Hello',
      text_body: 'Hello, Ada.',
      labels: ['offer', 'first contact'],
      attachments: [{ filename: 'offer.txt', size_bytes: 9 }],
    });
  });

  test('is sent once, however often and at the same time the form is submitted', async () => {
    const { browser, compose, listSent } = await arrange();
    const page = await browser.open(compose);
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.body) ?? [];
    const [, key = ''] = /name="key" value="([^"]+)"/.exec(page.body) ?? [];
    const fields = { ...HELLO, csrf, key, mode: 'new', original: '' };
    const answers = await Promise.all([1, 2, 3].map(() => browser.post(compose, fields)));
    answers.push(await browser.post(compose, fields));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([303, 303, 303, 303]);
    expect(new Set(answers.map(({ headers }) => headers.location)).size).toBe(1);
    expect(await listSent()).toHaveLength(1);
    // Another text is another message, also from the same form.
    await browser.post(compose, { ...fields, text_body: 'One more thing.' });
    expect(await listSent()).toHaveLength(2);
  });

  test('that is refused says why at its field, keeps the text and the files, and sends after the correction', async () => {
    const { browser, compose, get, idOf, listSent } = await arrange();
    await browser.open(compose);
    const refused = await browser.submitFiles(compose, { ...HELLO, to: 'no address', cc: '<b>' }, [
      file('kept.txt', 'Kept'),
    ]);
    expect(refused.statusCode).toBe(400);
    for (const shown of ['id="field-to-error"', 'id="field-cc-error"', 'Hello, Ada.', 'value="no address"'])
      expect(refused.body).toContain(shown);
    const [, kept = ''] = /name="attachments" value="([^"]+)" checked/.exec(refused.body) ?? [];
    expect(kept).toMatch(/^att_\w+ kept\.txt$/);
    await browser.submitFiles(compose, { ...HELLO, attachments: kept }, [NO_FILE]);
    expect(await get(`/messages/${idOf()}`)).toMatchObject({ attachments: [{ filename: 'kept.txt' }] });
    expect(await listSent()).toHaveLength(1);
  });

  test('to a suppressed address is refused at the recipients', async () => {
    const { browser, compose, token, listSent } = await arrange('owner');
    await app.call('/suppressions', { method: 'POST', token, body: { email: 'gone@people.example' } });
    await browser.open(compose);
    const refused = await browser.submit(compose, { ...HELLO, to: 'gone@people.example' });
    expect(refused.statusCode).toBe(422);
    expect(refused.body).toContain('id="field-to-error"');
    expect(refused.body).toContain('Hello, Ada.');
    expect(refused.body).not.toMatch(/POST \/api|validation_error|message_rejected/);
    const empty = await browser.submit(compose, { ...HELLO, to: '' });
    expect([empty.statusCode, empty.body]).toEqual([422, expect.stringContaining('id="field-to-error"')]);
    expect(await listSent()).toEqual([]);
  });

  test('with too large a file keeps what was written', async () => {
    const { browser, compose, listSent } = await arrange();
    await browser.open(compose);
    const refused = await browser.submitFiles(compose, HELLO, [
      file('large.txt', 'x'.repeat(25 * 1024 * 1024 + 1)),
      file('after.txt', 'unread'),
    ]);
    expect(refused.statusCode).toBe(413);
    for (const shown of ['id="field-files-error"', 'Hello, Ada.']) expect(refused.body).toContain(shown);
    expect(await listSent()).toEqual([]);
  });

  test('with too much in several files is refused at the files', async () => {
    const { browser, compose, listSent } = await arrange();
    await browser.open(compose);
    const half = 'x'.repeat(13 * 1024 * 1024);
    const refused = await browser.submitFiles(compose, HELLO, [
      file('one.txt', half),
      file('two.txt', half),
      file('three.txt', half),
    ]);
    expect(refused.statusCode).toBe(413);
    expect(refused.body).toContain('id="field-files-error"');
    // The files that fit are kept.
    expect(refused.body).toMatch(/name="attachments" value="att_\w+ one\.txt" checked/);
    expect(refused.body).not.toContain('two.txt');
    expect(await listSent()).toEqual([]);
  });

  test('is kept as a draft, also without recipients, or scheduled', async () => {
    const { browser, compose, get, idOf, listSent } = await arrange();
    await browser.open(compose);
    await browser.submitFiles(compose, { ...HELLO, to: '', action: 'draft' }, [file('a.txt', 'a')]);
    expect(browser.path).toMatch(/^\/drafts\/drf_\w+\?notice=draft-saved$/);
    expect(await get(`/drafts/${idOf()}`)).toMatchObject({
      subject: 'Hello',
      send_status: 'draft',
      attachments_meta: [{ filename: 'a.txt' }],
    });
    await browser.open(compose);
    await browser.submit(compose, { ...HELLO, send_at: '2099-01-31T09:30' });
    expect(browser.path).toMatch(/^\/drafts\/drf_\w+\?notice=message-scheduled$/);
    expect(await get(`/drafts/${idOf()}`)).toMatchObject({
      send_status: 'scheduled',
      send_at: '2099-01-31T09:30:00.000Z',
    });
    expect(await listSent()).toEqual([]);
  });

  test.each([
    ['cut off', (bytes: Buffer) => bytes.subarray(0, bytes.length - 40)],
    ['without an end of its first field', (bytes: Buffer) => bytes.subarray(0, 60)],
    ['of something else', () => Buffer.from('nothing of a form')],
  ])('in a form %s gets a page, and sends nothing', async (_case, change) => {
    const { browser, compose, listSent } = await arrange();
    const { body } = await browser.open(compose);
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(body) ?? [];
    const fields = Object.entries({ csrf, ...HELLO }).map(([name, content]) => ({ name, content }));
    const { raw, headers } = formCall([...fields, file('a.txt', 'a')]);
    const response = await app.app.inject({
      method: 'POST',
      url: compose,
      headers: { ...headers, cookie: `session=${browser.cookies.get('session')}` },
      payload: change(raw as Buffer),
    });
    expect([400, 403]).toContain(response.statusCode);
    expect(response.headers['content-type']).toContain('text/html');
    expect(await listSent()).toEqual([]);
  });

  test('with fields that are too long is refused before its files are stored', async () => {
    const { browser, compose, listSent } = await arrange();
    await browser.open(compose);
    const refused = await browser.submitFiles(compose, { ...HELLO, text_body: 'x'.repeat(1024 * 1024 + 1) }, [
      file('a.txt', 'a'),
    ]);
    expect(refused.statusCode).toBe(413);
    expect(await listSent()).toEqual([]);
  });

  test('stores nothing for a page of another site, and nothing for a viewer', async () => {
    const { browser, compose, listSent, inbox } = await arrange();
    await browser.open(compose);
    const forged = await browser.submitFiles(compose, { ...HELLO, csrf: 'forged' }, [file('a.txt', 'a')]);
    expect(forged.statusCode).toBe(403);
    const rows = await app.worker.db
      .selectFrom('attachments')
      .select('id')
      .where('inbox_id', '=', inbox.id)
      .execute();
    expect([rows, await listSent()]).toEqual([[], []]);
    const viewer = await arrange('viewer');
    expect((await viewer.browser.open(viewer.compose)).statusCode).toBe(403);
  });
});

describe('an answer', () => {
  test('goes to the sender with the original quoted, in the thread', async () => {
    const { browser, compose, receive, listSent } = await arrange();
    const { message } = await receive(
      mail({ From: 'ada@people.example', Cc: 'bob@people.example', Subject: 'Question' }, 'Is it ready?'),
    );
    const page = await browser.open(`${compose}?reply_to=${message?.id}&mode=reply`);
    expect(page.body).toContain('<bdi>ada@people.example</bdi>');
    expect(page.body).toContain('Is it ready?');
    await browser.submit(compose, { ...EMPTY, text_body: 'Yes.' });
    const [reply] = await listSent();
    expect(reply).toMatchObject({
      subject: 'Re: Question',
      to_addresses: ['ada@people.example'],
      thread_id: message?.threadId,
      text_body: expect.stringMatching(/^Yes\.[\s\S]*> Is it ready\?/),
    });
  });

  test('to all, and a draft of an answer, have the same recipients and quote as the API gives', async () => {
    const { browser, compose, receive, get, idOf, inbox } = await arrange();
    const { message } = await receive(
      mail(
        { From: 'ada@people.example', To: inbox.email, Cc: 'bob@people.example', Subject: 'Question' },
        'Is it ready?',
      ),
    );
    await browser.open(`${compose}?reply_to=${message?.id}&mode=reply_all`);
    await browser.submit(compose, { ...EMPTY, action: 'draft', text_body: 'Soon.' });
    expect(await get(`/drafts/${idOf()}`)).toMatchObject({
      send_status: 'draft',
      in_reply_to: message?.id,
      to_addresses: ['ada@people.example'],
      cc_addresses: ['bob@people.example'],
      text_body: expect.stringMatching(/^Soon\.[\s\S]*> Is it ready\?/),
    });
  });

  test('without text is refused at its field', async () => {
    const { browser, compose, receive, listSent } = await arrange();
    const { message } = await receive(mail({ From: 'ada@people.example', Subject: 'Question' }));
    await browser.open(`${compose}?reply_to=${message?.id}&mode=reply`);
    const refused = await browser.submit(compose, { ...EMPTY, text_body: '' });
    expect([refused.statusCode, refused.body]).toEqual([
      400,
      expect.stringContaining('id="field-text_body-error"'),
    ]);
    expect(await listSent()).toEqual([]);
  });

  test('to a message of another inbox or organization is not found', async () => {
    const { browser, compose } = await arrange();
    const other = await arrange();
    const { message } = await other.receive(mail({ From: 'ada@people.example', Subject: 'Secret' }));
    const page = await browser.open(`${compose}?reply_to=${message?.id}&mode=forward`);
    expect(page.statusCode).toBe(404);
    expect(page.body).not.toContain('Secret');
  });
});

test('a forwarded message goes to new recipients with the original', async () => {
  const { browser, compose, receive, listSent } = await arrange();
  const { message } = await receive(mail({ From: 'ada@people.example', Subject: 'Report' }, 'All is well.'));
  await browser.open(`${compose}?reply_to=${message?.id}&mode=forward`);
  await browser.submit(compose, { ...EMPTY, to: 'eve@people.example', text_body: 'See below.' });
  const [forwarded] = await listSent();
  expect(forwarded).toMatchObject({
    subject: 'Fwd: Report',
    to_addresses: ['eve@people.example'],
    text_body: expect.stringMatching(/^See below\.[\s\S]*All is well\./),
  });
});
