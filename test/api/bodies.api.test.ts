import { beforeAll, describe, expect, test } from '@jest/globals';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp();
let organization: TestOrganization;
let inboxId: string;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

const post = (path: string, call: Call) =>
  app.call(path, { method: 'POST', token: organization.token, ...call });
const JSON_TYPE = { 'content-type': 'application/json' };

describe('body parsing', () => {
  test.each(['{', '{"username":}', '[1,', 'nonsense', '\u0000', '{"a":1}{"b":2}'])(
    'rejects %j as malformed JSON',
    async (raw) => {
      expectProblem(await post('/inboxes', { raw, headers: JSON_TYPE }), 'malformed_json');
    },
  );

  test.each([
    ['ISO 8859-1', Buffer.from('{"display_name":"J\u00fcrgen"}', 'latin1')],
    ['half a character', Buffer.from([0x22, 0xe2, 0x82, 0x22])],
    ['a surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
  ])('rejects %s as invalid UTF-8', async (_name, raw) => {
    const problem = expectProblem(await post('/inboxes', { raw, headers: JSON_TYPE }), 'malformed_json');
    expect(problem.detail).toContain('UTF-8');
  });

  test.each(['utf-8', 'UTF-8', '"utf-8"', 'utf8'])('accepts charset=%s', async (charset) => {
    const headers = { 'content-type': `application/json; charset=${charset}` };
    expect((await post('/inboxes', { raw: '{}', headers })).statusCode).toBe(201);
  });

  test.each([
    { 'content-type': 'application/json; charset=iso-8859-1' },
    { 'content-type': 'application/json; charset="utf-16"' },
    { ...JSON_TYPE, 'content-encoding': 'gzip' },
    { ...JSON_TYPE, 'content-encoding': 'identity, br' },
  ])('rejects %j', async (headers) => {
    expectProblem(await post('/inboxes', { raw: '{}', headers }), 'unsupported_media_type');
  });

  test('accepts the content encoding identity', async () => {
    const headers = { ...JSON_TYPE, 'content-encoding': 'Identity' };
    expect((await post('/inboxes', { raw: '{}', headers })).statusCode).toBe(201);
  });

  test.each([
    ['{"__proto__":{"x":1}}', '__proto__'],
    ['{"headers":{"\\u005f_proto__":"x"}}', 'headers.__proto__'],
    ['{"headers":{"constructor":{"prototype":{}}}}', 'headers.constructor.prototype'],
  ])('rejects %s and reports the path', async (raw, path) => {
    const call = { raw, headers: JSON_TYPE };
    const problem = expectProblem(await post(`/inboxes/${inboxId}/drafts`, call), 'validation_error');
    expect(problem.errors).toEqual([{ path, message: 'is not allowed as a field name' }]);
  });

  test.each([
    [{ to: 'x' }, 'to', 'must be a list or null, such as [{"email":"ada@people.example","name":"Ada"}]'],
    [{ to: [{ email: 7 }] }, 'to[0].email', 'must be a string, such as "ada@people.example"'],
    [{ to: [7] }, 'to[0]', expect.stringMatching(/^must be an object or a string, such as {"email":"ada@/)],
    [{ to: [{ name: 'Ada' }] }, 'to[0].email', 'is required, such as "ada@people.example"'],
    [{ subject: 7 }, 'subject', 'must be a string or null'],
    [{ to: ['Ada <ada>'] }, 'to[0]', 'must have the form name@domain'],
    [{ to: [`${'x'.repeat(256)} <ada@people.example>`] }, 'to[0]', expect.stringContaining('255 characters')],
    [{ text: 'x' }, 'text', 'is not a field of this operation; did you mean text_body?'],
    [{ replyTo: [] }, 'replyTo', 'is not a field of this operation; did you mean reply_to?'],
    [{ zzz: 1 }, 'zzz', expect.stringMatching(/which has to, cc, bcc, .*text_body/)],
    [
      { attachments: [{ file_name: 'a' }] },
      'attachments[0].file_name',
      expect.stringContaining('did you mean filename?'),
    ],
    [{ labels: [' a'] }, 'labels[0]', 'must be a single line without leading or trailing spaces'],
    [{ headers: { 'X ü': 'a' } }, 'headers["X ü"]', expect.stringContaining('not a header name')],
    [{ subject: 'a\nb' }, 'subject', 'must not contain control characters, such as line breaks'],
    [{ labels: ['a', 'a'] }, 'labels', expect.stringContaining('duplicate')],
    [{ labels: [''] }, 'labels[0]', 'must have at least 1 character'],
    [{ subject: 'x'.repeat(999) }, 'subject', 'must have at most 998 characters'],
  ])('reports only the invalid field of %j', async (body, path, message) => {
    const problem = expectProblem(await post(`/inboxes/${inboxId}/drafts`, { body }), 'validation_error');
    expect(problem.errors).toEqual([{ path, message }]);
  });

  test.each([
    [
      '/inboxes',
      { displayName: 'x' },
      'displayName is not a field of this operation; did you mean display_name?',
    ],
    ['/inboxes', { username: 'Bad Name!' }, /^username must be 1 to 64 letters/],
    ['drafts', { headers: { Subject: 'x' } }, 'headers.Subject is not a header a caller may set.'],
  ])('says in one sentence which field of %s %j is wrong', async (path, body, detail) => {
    const url = path === 'drafts' ? `/inboxes/${inboxId}/drafts` : path;
    const problem = expectProblem(await post(url, { body }), 'validation_error');
    expect(problem.detail).toEqual(typeof detail === 'string' ? detail : expect.stringMatching(detail));
  });

  test.each(['null', '[]', '"text"', '1', 'true'])('rejects %s, which is not an object', async (raw) => {
    const problem = expectProblem(await post('/inboxes', { raw, headers: JSON_TYPE }), 'validation_error');
    expect(problem.errors).toEqual([{ path: 'body', message: expect.any(String) }]);
  });

  test('reports unknown fields and all other errors together', async () => {
    const problem = expectProblem(
      await post('/inboxes', { body: { usrname: 'x', username: 7, client_id: '' } }),
      'validation_error',
    );
    expect((problem.errors as { path: string }[]).map(({ path }) => path).sort()).toEqual([
      'client_id',
      'username',
      'usrname',
    ]);
  });

  test('does not convert types', async () => {
    expectProblem(await post('/inboxes', { body: { username: 12345 } }), 'validation_error');
    expectProblem(await post('/webhooks/endpoints', { body: { url: 1, events: 'x' } }), 'validation_error');
  });

  test.each([
    ['NUL', { display_name: 'a\u0000b' }],
    ['half a surrogate pair', { display_name: 'a\ud800b' }],
    ['NUL in a name', { 'a\u0000': 1 }],
  ])('rejects %s', async (_name, body) => {
    expectProblem(await post('/inboxes', { body }), 'validation_error');
  });

  test('rejects NUL in queries and paths too', async () => {
    const { token } = organization;
    expectProblem(await app.call('/messages?subject=a%00b', { token }), 'validation_error');
    expectProblem(await app.call('/inboxes/inb_%00', { token }), 'validation_error');
  });

  test.each([
    'text/plain',
    'application/xml',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
  ])('rejects the content type %s', async (type) => {
    expectProblem(
      await post('/inboxes', { raw: 'username=x', headers: { 'content-type': type } }),
      'unsupported_media_type',
    );
  });

  test('rejects a body for an operation without one, but accepts a content type without a body', async () => {
    const send = (raw: string) => post('/drafts/drf_none/send', { raw, headers: JSON_TYPE });
    expectProblem(await send(''), 'not_found');
    expectProblem(await send('{}'), 'not_found');
    expectProblem(await send('{"now":true}'), 'validation_error');
  });

  test('rejects a body with too many values without listing every error', async () => {
    const to = Array.from({ length: 30_000 }, () => 1);
    const problem = expectProblem(
      await post(`/inboxes/${inboxId}/messages`, { body: { to } }),
      'validation_error',
    );
    expect(problem.errors).toHaveLength(1);
  });

  test('limits bodies to 1 MiB, and to 8 MiB for messages', async () => {
    const large = { text_body: 'x'.repeat(2 * 1024 * 1024), to: [{ email: 'a@example.test' }] };
    expect((await post(`/inboxes/${inboxId}/messages`, { body: large })).statusCode).toBe(201);
    const smallLimitProblem = expectProblem(await post('/inboxes', { body: large }), 'payload_too_large');
    expect(smallLimitProblem.fix).toBe('Send at most 1 MiB.');
    const huge = { ...large, text_body: 'x'.repeat(5 * 1024 * 1024 + 1) };
    expectProblem(await post(`/inboxes/${inboxId}/messages`, { body: huge }), 'validation_error');
    const oversized = { ...large, text_body: 'x'.repeat(9 * 1024 * 1024) };
    const oversizedProblem = expectProblem(
      await post(`/inboxes/${inboxId}/messages`, { body: oversized }),
      'payload_too_large',
    );
    expect(oversizedProblem.fix).toBe('Send at most 8 MiB.');
  });
});

test('null in a POST means that a field is not given', async () => {
  const inbox = await post('/inboxes', { body: { display_name: null, client_id: null, domain: undefined } });
  expect(inbox.statusCode).toBe(201);
  expect(inbox.json()).toMatchObject({ display_name: null, client_id: null });
  const body = {
    to: [
      'Ada <ada@people.example>',
      '"Lovelace, \\"Ada\\"" <ada2@people.example>',
      'bob@people.example',
      { email: 'eve@people.example' },
    ],
    cc: null,
    subject: null,
    text_body: 'Hello',
    html_body: null,
    attachments: null,
  };
  const sent = await post(`/inboxes/${inboxId}/messages`, { body });
  expect(sent.statusCode).toBe(201);
  expect(sent.json()).toMatchObject({
    to: [
      { email: 'ada@people.example', name: 'Ada' },
      { email: 'ada2@people.example', name: 'Lovelace, "Ada"' },
      { email: 'bob@people.example' },
      { email: 'eve@people.example' },
    ],
    cc: [],
    subject: '',
    html_body: null,
  });
  const reply = await post(`/messages/${sent.json().id}/reply`, {
    body: { text_body: null, html_body: ' ' },
  });
  expectProblem(reply, 'validation_error');
});
