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
    ['{"__proto__":{"x":1}}', '/body/__proto__'],
    ['{"headers":{"\\u005f_proto__":"x"}}', '/body/headers/__proto__'],
    ['{"headers":{"constructor":{"prototype":{}}}}', '/body/headers/constructor/prototype'],
  ])('rejects %s and reports the path', async (raw, path) => {
    const call = { raw, headers: JSON_TYPE };
    const problem = expectProblem(await post(`/inboxes/${inboxId}/drafts`, call), 'validation_error');
    expect(problem.errors).toEqual([{ path, message: 'is not allowed as a field name' }]);
  });

  test.each([
    [{ to: 'x' }, '/body/to', 'must be array or null'],
    [{ to: [{ email: 7 }] }, '/body/to/0/email', 'must be string'],
    [{ labels: [' a'] }, '/body/labels/0', 'must be a single line without leading or trailing spaces'],
    [{ headers: { 'X ü': 'a' } }, '/body/headers/X ü', expect.stringContaining('not a header name')],
    [{ subject: 'a\nb' }, '/body/subject', 'must not contain control characters, such as line breaks'],
    [{ labels: ['a', 'a'] }, '/body/labels', expect.stringContaining('duplicate')],
  ])('reports only the invalid field of %j', async (body, path, message) => {
    const problem = expectProblem(await post(`/inboxes/${inboxId}/drafts`, { body }), 'validation_error');
    expect(problem.errors).toEqual([{ path, message }]);
  });

  test.each(['null', '[]', '"text"', '1', 'true'])('rejects %s, which is not an object', async (raw) => {
    const problem = expectProblem(await post('/inboxes', { raw, headers: JSON_TYPE }), 'validation_error');
    expect(problem.errors).toEqual([{ path: '/body', message: expect.any(String) }]);
  });

  test('reports unknown fields and all other errors together', async () => {
    const problem = expectProblem(
      await post('/inboxes', { body: { usrname: 'x', username: 7, client_id: '' } }),
      'validation_error',
    );
    expect((problem.errors as { path: string }[]).map(({ path }) => path).sort()).toEqual([
      '/body/client_id',
      '/body/username',
      '/body/usrname',
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
