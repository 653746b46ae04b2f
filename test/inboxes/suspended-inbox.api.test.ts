import { beforeAll, expect, test } from '@jest/globals';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp();
let organization: TestOrganization;
const ids = { inbox: '', message: '', thread: '', draft: '' };
const call = (method: Call['method'], path: string, body?: unknown) =>
  app.call(path, { method, body, token: organization.token });
const CONTENT = { to: [{ email: 'ada@people.example' }], subject: 'Hello', text_body: 'x' };

beforeAll(async () => {
  organization = await createOrganization(app.worker);
  ids.inbox = (await createInbox(app.worker, organization)).id;
  const sent = await call('POST', `/inboxes/${ids.inbox}/messages`, CONTENT);
  Object.assign(ids, { message: sent.json().id, thread: sent.json().thread_id });
  ids.draft = (await call('POST', `/inboxes/${ids.inbox}/drafts`, CONTENT)).json().id;
  await app.worker.db
    .updateTable('inboxes')
    .set({ status: 'suspended' })
    .where('id', '=', ids.inbox)
    .execute();
});

const WRITES: [Call['method'], () => string, unknown?][] = [
  ['PATCH', () => `/inboxes/${ids.inbox}`, { display_name: 'New' }],
  ['DELETE', () => `/inboxes/${ids.inbox}`],
  ['DELETE', () => `/inboxes/${ids.inbox}?purge=true`],
  ['POST', () => `/inboxes/${ids.inbox}/pause`, { reason: 'x' }],
  ['POST', () => `/inboxes/${ids.inbox}/resume`],
  ['POST', () => `/inboxes/${ids.inbox}/credentials/rotate`],
  ['POST', () => `/inboxes/${ids.inbox}/messages`, CONTENT],
  ['POST', () => `/inboxes/${ids.inbox}/drafts`, CONTENT],
  ['PATCH', () => `/drafts/${ids.draft}`, { subject: 'New' }],
  ['POST', () => `/drafts/${ids.draft}/send`],
  ['DELETE', () => `/drafts/${ids.draft}`],
  ['POST', () => `/messages/${ids.message}/reply`, { text_body: 'x' }],
  ['POST', () => `/messages/${ids.message}/forward`, { to: CONTENT.to }],
  ['POST', () => `/messages/${ids.message}/labels`, { labels: ['x'] }],
  ['POST', () => `/messages/${ids.message}/labels/remove`, { labels: ['x'] }],
  ['DELETE', () => `/messages/${ids.message}/labels/x`],
  ['POST', () => `/messages/${ids.message}/cancel`],
  ['DELETE', () => `/messages/${ids.message}`],
  ['DELETE', () => `/threads/${ids.thread}`],
  ['POST', () => '/lists/send/block', { entry: 'x@people.example' }],
];

// Rest parameters, because Jest passes `done` for a parameter that a row lacks, and then waits for its call.
test.each(WRITES)('refuses the write %s %p', async (...[method, path, body]) => {
  const inScope = path().startsWith('/lists') ? { ...(body as object), inbox_id: ids.inbox } : body;
  expectProblem(await call(method, path(), inScope), 'inbox_suspended');
});

test('refuses an upload before it is read', async () => {
  const response = await app.call(`/inboxes/${ids.inbox}/attachments`, {
    method: 'POST',
    token: organization.token,
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
    raw: '--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\ncontent-type: text/plain\r\n\r\nx\r\n--b--\r\n',
  });
  expectProblem(response, 'inbox_suspended');
});

test.each([
  () => `/inboxes/${ids.inbox}`,
  () => `/inboxes/${ids.inbox}/credentials`,
  () => `/inboxes/${ids.inbox}/messages`,
  () => `/inboxes/${ids.inbox}/drafts`,
  () => `/drafts/${ids.draft}`,
  () => `/messages/${ids.message}`,
  () => `/threads/${ids.thread}`,
])('still reads %p', async (path) => {
  expect((await call('GET', path())).statusCode).toBe(200);
});
