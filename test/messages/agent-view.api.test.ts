import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { createKey } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { buildShopMail, countTokens } from '../support/shop-mail.ts';

const app = useTestApp();

type Answer = Record<string, unknown> & { id: string; text?: string; next_offset?: number };

async function arrange() {
  const arranged = await arrangeInbox(app.worker, {
    authenticate: async () => ({ spf: 'pass', dkim: 'pass', dmarc: 'pass', arc: 'none', policy: null }),
  });
  const { inbox, receive } = arranged;
  const { token } = await createKey(app.worker, { organizationId: inbox.organizationId });
  const get = async (path: string) => {
    const response = await app.call(path, { token });
    expect(response.statusCode).toBe(200);
    return response.json<Answer>();
  };
  const arrive = async (raw: string) => (await receive(raw)).message?.id ?? '';
  const post = (path: string, body: object = {}) => app.call(path, { method: 'POST', token, body });
  return { ...arranged, token, get, post, arrive };
}

const SIGN_IN = mail(
  {
    From: 'Acme <no-reply@acme.com>',
    Subject: 'Your code',
    Date: 'Mon, 23 Nov 2026 10:00:00 +0100',
    'Content-Type': 'text/html',
  },
  '<p>Your verification code is 482913.</p><p><a href="https://acme.com/verify?t=1">Verify your email</a> <a href="https://acme.com/help">Help</a> <a href="https://acme.com/unsubscribe">Unsubscribe</a></p>',
);
const CODE = {
  value: '482913',
  raw: '482913',
  confidence: 'high',
  context: 'Your verification code is 482913.',
};
const VERIFY = {
  url: 'https://acme.com/verify?t=1',
  text: 'Verify your email',
  kind: 'verify',
  host: 'acme.com',
  matches_sender: true,
};

describe('view=agent', () => {
  test('is one flat shape without empty fields', async () => {
    const { get, arrive, inbox } = await arrange();
    const id = await arrive(SIGN_IN);
    expect(await get(`/messages/${id}?view=agent`)).toEqual({
      object: 'message',
      id,
      thread_id: expect.stringMatching(/^thr_/),
      inbox_id: inbox.id,
      direction: 'inbound',
      status: 'received',
      from: { email: 'no-reply@acme.com', name: 'Acme' },
      to: expect.anything(),
      subject: 'Your code',
      date: '2026-11-23T09:00:00.000Z',
      text: expect.stringMatching(/^Your verification code is 482913\./),
      codes: [CODE],
      links: [
        VERIFY,
        { ...VERIFY, url: 'https://acme.com/unsubscribe', text: 'Unsubscribe', kind: 'unsubscribe' },
      ],
    });
  });

  test('has what is not empty: files, signals, labels, an invitation, a failed authentication', async () => {
    const { receive, get, inbox } = await arrangeFailing();
    const calendar =
      'BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nSUMMARY:Lunch\r\nEND:VEVENT\r\nEND:VCALENDAR';
    const { message } = await receive(
      mail(
        { 'Content-Type': 'multipart/mixed; boundary=b', Date: 'nonsense' },
        `--b\r\n\r\nLunch?\r\n--b\r\nContent-Type: text/calendar; name=a.ics\r\n\r\n${calendar}\r\n--b--\r\n`,
      ),
    );
    expect(await get(`/messages/${message?.id}?view=agent`)).toMatchObject({
      inbox_id: inbox.id,
      date: message?.createdAt.toISOString(),
      attachments: [{ id: expect.any(String), filename: 'a.ics', content_type: 'text/calendar' }],
      labels: ['unauthenticated'],
      signals: ['authentication_failed'],
      invites: [{ method: 'REQUEST', summary: 'Lunch' }],
      authentication: { spf: 'fail', dkim: 'none', dmarc: 'fail' },
    });
  });

  async function arrangeFailing() {
    const arranged = await arrangeInbox(app.worker, {
      authenticate: async () => ({ spf: 'fail', dkim: 'none', dmarc: 'fail', arc: 'none', policy: null }),
    });
    const { token } = await createKey(app.worker, { organizationId: arranged.inbox.organizationId });
    const get = async (path: string) => (await app.call(path, { token })).json<Answer>();
    return { ...arranged, get };
  }

  test('is offered by every operation that answers a message, with the same shape', async () => {
    const { get, post, arrive, inbox, token } = await arrange();
    const id = await arrive(SIGN_IN);
    const one = await get(`/messages/${id}?view=agent`);
    const listed = { ...one, links: [VERIFY] };
    const { data } = await get(`/inboxes/${inbox.id}/messages?view=agent`);
    expect(data).toEqual([listed]);
    expect((await get('/messages?view=agent')).data).toEqual([listed]);
    expect((await get('/messages?view=agent&q=verification')).data).toEqual([listed]);
    const thread = await get(`/threads/${one.thread_id}?view=agent`);
    expect(thread).toMatchObject({ object: 'thread', message_count: 1, messages: [listed] });
    expect(await get(`/inboxes/${inbox.id}/messages/wait?view=agent`)).toEqual(one);
    expect(await get(`/threads/${one.thread_id}/wait?view=agent`)).toEqual(one);
    expect(await get(`/messages/${id}/wait?view=agent`)).toEqual(one);
    const labeled = await post(`/messages/${id}/labels?view=agent`, { labels: ['seen'] });
    expect(labeled.json()).toEqual({ ...one, labels: ['seen'] });
    expect((await post(`/messages/${id}/labels/remove?view=agent`, { labels: ['seen'] })).json()).toEqual(
      one,
    );
    const removed = await app.call(`/messages/${id}/labels/seen?view=agent`, { method: 'DELETE', token });
    expect(removed.json()).toEqual(one);
  });

  test('shows what is sent, whose text is what is new in it', async () => {
    const { post, get, arrive, inbox, token } = await arrange();
    const content = { to: ['ada@people.example'], subject: 'Hello', text_body: 'Hello Ada' };
    const sent = await post(`/inboxes/${inbox.id}/messages?view=agent`, content);
    expect(sent.statusCode).toBe(201);
    expect(sent.headers['content-type']).toMatch(/^application\/json/);
    expect(sent.json()).toMatchObject({ object: 'message', direction: 'outbound', text: 'Hello Ada' });
    expect(sent.json()).not.toHaveProperty('created_at');
    const id = await arrive(mail({ Subject: 'Question' }, 'How are you?'));
    const replied = await post(`/messages/${id}/reply?view=agent`, { text_body: 'Fine' });
    expect(replied.json()).toMatchObject({ subject: 'Re: Question', text: 'Fine' });
    expect(await get(`/messages/${replied.json<Answer>().id}?view=agent`)).toMatchObject({ text: 'Fine' });
    const drafted = await post(`/inboxes/${inbox.id}/drafts`, {
      ...content,
      text_body: null,
      html_body: '<p>Hi <b>Bob</b></p>',
    });
    const ofDraft = await post(`/drafts/${drafted.json<Answer>().id}/send?view=agent`);
    expect(ofDraft.json()).toMatchObject({ object: 'message', text: 'Hi Bob' });
    const canceled = await post(`/messages/${ofDraft.json<Answer>().id}/cancel?view=agent`);
    expect(canceled.json()).toMatchObject({ object: 'message', status: 'canceled' });
    const key = newId('message');
    const once = () =>
      app.call(`/inboxes/${inbox.id}/messages?view=agent`, {
        method: 'POST',
        token,
        body: content,
        headers: { 'idempotency-key': key },
      });
    const [first, again] = [await once(), await once()];
    expect(first.json()).toMatchObject({ object: 'message', text: 'Hello Ada' });
    expect(again.json()).toEqual(first.json());
    const later = await post(`/inboxes/${inbox.id}/messages?view=agent`, {
      ...content,
      send_at: '2099-01-01T00:00:00Z',
    });
    expect(later.json()).toMatchObject({ object: 'draft' });
  });

  test('shows a key that may not read only the receipt', async () => {
    const { inbox } = await arrange();
    const { token } = await createKey(app.worker, {
      organizationId: inbox.organizationId,
      permissions: ['messages:send'],
    });
    const sent = await app.call(`/inboxes/${inbox.id}/messages?view=agent`, {
      method: 'POST',
      token,
      body: { to: ['ada@people.example'], subject: 'Hello', text_body: 'secret' },
    });
    expect(sent.statusCode).toBe(201);
    expect(sent.json()).toMatchObject({ object: 'receipt', id: expect.stringMatching(/^msg_/) });
    expect(sent.body).not.toContain('secret');
  });

  test.each([
    [
      'bounced',
      '5.1.1',
      'No such user',
      { type: 'Permanent', suppressed: false, next: /Ask for the right one/ },
    ],
    ['bounced', '4.4.1', 'Timeout', { type: 'Transient', suppressed: false, next: /later/ }],
    ['complained', null, 'abuse', { type: 'Complaint', suppressed: false, next: /not write/ }],
    [
      'suppressed',
      '5.1.1',
      'Not sent',
      { type: 'Permanent', suppressed: true, next: /DELETE \/suppressions/ },
    ],
  ])('tells why it did not arrive: %s %s', async (status, code, reason, { next, ...expected }) => {
    const { post, get, inbox } = await arrange();
    const email = `${newId('message')}@people.example`;
    const sent = await post(`/inboxes/${inbox.id}/messages`, { to: [email], subject: 'Hi', text_body: 'Hi' });
    const { id } = sent.json<Answer>();
    expect(await get(`/messages/${id}?view=agent`)).not.toHaveProperty('bounce');
    await query(
      app.worker,
      sql`update message_recipients set status = ${status}, status_code = ${code}, diagnostic_code = ${reason} where message_id = ${id}`,
    );
    if (expected.suppressed) await post('/suppressions', { email });
    const bounce = {
      ...expected,
      email,
      reason,
      ...(code ? { code } : {}),
      next: expect.stringMatching(next),
    };
    expect(await get(`/messages/${id}?view=agent`)).toMatchObject({ bounce });
    const { data } = await get(`/inboxes/${inbox.id}/messages?view=agent`);
    expect(data).toMatchObject([{ bounce }]);
  });
});

describe('the text', () => {
  test('is cut, says so, and goes on at the offset', async () => {
    const { get, arrive } = await arrange();
    const id = await arrive(mail({}, `${'word '.repeat(5_000)}end`));
    const first = await get(`/messages/${id}?view=agent`);
    expect(first).toMatchObject({ truncated: true, next_offset: 20_000 });
    expect(first.text).toHaveLength(20_000);
    const rest = await get(`/messages/${id}?view=agent&offset=${first.next_offset}`);
    expect(rest.text).toMatch(/end$/);
    expect(rest).not.toHaveProperty('truncated');
    expect(`${first.text}${rest.text}`.trim()).toBe(`${'word '.repeat(5_000)}end`);
    const part = await get(`/messages/${id}?view=agent&max_chars=4&offset=5`);
    expect(part).toMatchObject({ text: 'word', truncated: true, next_offset: 9 });
    expect(await get(`/messages/${id}?view=agent&offset=9000000`)).not.toHaveProperty('text');
  });

  test('is never cut within a character', async () => {
    const { get, arrive } = await arrange();
    const id = await arrive(mail({ 'Content-Type': 'text/plain; charset=utf-8' }, 'ab👍cd'));
    const first = await get(`/messages/${id}?view=agent&max_chars=3`);
    expect(first).toMatchObject({ text: 'ab', next_offset: 2 });
    expect(await get(`/messages/${id}?view=agent&max_chars=3&offset=2`)).toMatchObject({ text: '👍c' });
    expect((await get(`/messages/${id}?view=agent&max_chars=1&offset=2`)).next_offset).toBeGreaterThan(2);
  });

  test('has headings, lists, tables and links as Markdown', async () => {
    const { get, arrive, inbox } = await arrange();
    const html =
      '<h2>News</h2><ul><li>One</li><li><a href="https://a.example/very/long">Two</a></li></ul><table><tr><th>Item</th><th>Price</th></tr><tr><td>Hat</td><td>$5</td></tr></table><p style="display:none">hidden</p>';
    const id = await arrive(mail({ 'Content-Type': 'text/html' }, html));
    const text =
      '## News\n\n- One\n- [Two](https://a.example/very/long)\n\n| Item | Price |\n| --- | --- |\n| Hat | $5 |';
    expect(await get(`/messages/${id}?view=agent&format=markdown`)).toMatchObject({ text });
    expect(await get(`/inboxes/${inbox.id}/messages/wait?view=agent&format=markdown`)).toMatchObject({
      text,
    });
    const plain = await arrive(mail({}, '# Not HTML'));
    expect(await get(`/messages/${plain}?view=agent&format=markdown`)).toMatchObject({ text: '# Not HTML' });
  });

  test.each(['format=markdown', 'max_chars=10', 'offset=10'])(
    'parameters of the text need the view: %s',
    async (name) => {
      const { token, arrive } = await arrange();
      const id = await arrive(SIGN_IN);
      const response = await app.call(`/messages/${id}?${name}`, { token });
      expectProblem(response, 'validation_error');
    },
  );
});

describe('codes, links and invitations', () => {
  test('stand in every view of a received message', async () => {
    const { get, arrive, inbox } = await arrange();
    const id = await arrive(SIGN_IN);
    const found = {
      codes: [{ ...CODE, origin_domain: null }],
      links: [VERIFY, { kind: 'unsubscribe' }],
      invites: [],
    };
    const { thread_id: threadId, ...one } = await get(`/messages/${id}`);
    expect(one).toMatchObject(found);
    for (const view of ['compact', 'summary', 'full'])
      expect((await get(`/inboxes/${inbox.id}/messages?view=${view}`)).data).toMatchObject([found]);
    expect(await get(`/threads/${threadId}`)).toMatchObject({ messages: [found] });
  });

  test('links=all gives every link of one message', async () => {
    const { get, arrive } = await arrange();
    const id = await arrive(SIGN_IN);
    const kinds = ['verify', 'other', 'unsubscribe'].map((kind) => ({ kind }));
    expect(await get(`/messages/${id}?links=all`)).toMatchObject({ links: kinds });
    const all = await get(`/messages/${id}?view=agent&links=all`);
    expect(all).toMatchObject({ links: kinds });
    expect(all).not.toHaveProperty('links_truncated');
  });

  test('links=all says if the message has more', async () => {
    const { get, arrive } = await arrange();
    const many = Array.from({ length: 600 }, (_, at) => `<a href="https://a.example/${at}">${at}</a>`).join(
      ' ',
    );
    const id = await arrive(mail({ 'Content-Type': 'text/html' }, many));
    const { links, links_truncated: isTruncated } = await get(`/messages/${id}?view=agent&links=all`);
    expect({ count: (links as unknown[]).length, isTruncated }).toEqual({ count: 500, isTruncated: true });
    expect(await get(`/messages/${id}?view=agent`)).not.toHaveProperty('links');
  });

  test('are not in the events', async () => {
    const { get, arrive } = await arrange();
    await arrive(SIGN_IN);
    // The feed waits for every transaction that is older than the event, also for those of tests beside this one.
    const event = await eventually(async () => {
      const { data } = await get('/events?type=message.received');
      expect(data).toHaveLength(1);
      return (data as { data: object }[])[0];
    });
    for (const name of ['codes', 'links', 'invites']) expect(event?.data).not.toHaveProperty(name);
  });
});

describe('tokens', () => {
  test('a short message takes at most 130', async () => {
    const { get, arrive } = await arrange();
    const text =
      'Hi, the report is ready. Could you look at page four before we meet on Friday? It has the numbers. Thank you, Ada';
    expect(text.length).toBeLessThanOrEqual(120);
    const id = await arrive(
      mail({ From: 'Ada <ada@people.example>', To: 'agent@mail.test', Subject: 'Report' }, text),
    );
    const answer = await get(`/messages/${id}?view=agent`);
    expect(answer).toMatchObject({ text });
    expect(countTokens(answer)).toBeLessThanOrEqual(130);
  });

  test('a mail of a shop with 25 tracking links takes at most 1,300, and 260 in a list', async () => {
    const { get, arrive, inbox } = await arrange();
    const id = await arrive(buildShopMail());
    const answer = await get(`/messages/${id}?view=agent`);
    expect(answer.text).toContain('Head torch, 400 lumen (20)');
    expect(answer.text).toContain('94104');
    expect(answer).not.toHaveProperty('truncated');
    expect(countTokens(answer)).toBeLessThanOrEqual(1_300);
    const { data } = await get(`/inboxes/${inbox.id}/messages?view=agent`);
    expect(data).toMatchObject([{ truncated: true }]);
    expect(countTokens((data as object[])[0])).toBeLessThanOrEqual(260);
    expect((await get(`/messages/${id}?links=all`)).links).toHaveLength(25);
  });
});
