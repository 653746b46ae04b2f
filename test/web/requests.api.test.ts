import { beforeEach, expect, test } from '@jest/globals';
import type { ApiRequest } from '../../domain/requests/api-request.entity.ts';
import { lowestIdAt, newId } from '../../platform/ids.ts';
import { whatToDo } from '../../web/requests/what-to-do.ts';
import { createAccountQuickly, type QuickAccount } from '../support/accounts.ts';
import { createKey } from '../support/organizations.ts';
import { createPageClient, type PageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
let person: QuickAccount;
let browser: PageClient;
let keyId: string;

beforeEach(async () => {
  person = await createAccountQuickly(app);
  keyId = (await createKey(app.worker, { organizationId: person.organizationId })).keyId;
  browser = createPageClient(app);
  browser.cookies.set('session', person.token);
});

const hoursAgo = (hours: number) => lowestIdAt('request', new Date(Date.now() - hours * 3_600_000));

/** Inserts calls of the key. */
async function called(...calls: Partial<ApiRequest>[]) {
  await app.worker.db
    .insertInto('api_requests')
    .values(
      calls.map((call) => ({
        id: call.id ?? newId('request'),
        org_id: call.organizationId ?? person.organizationId,
        env_id: 'env_test',
        method: call.method ?? 'GET',
        path: call.path ?? '/api/v1/inboxes',
        status: call.status ?? 200,
        code: call.code ?? null,
        credential_kind: call.credentialKind ?? 'api_key',
        credential_id: call.credentialId ?? keyId,
        duration_ms: call.durationMs ?? 1_234,
      })),
    )
    .execute();
}

test('a list without calls says what would stand there', async () => {
  const page = (await browser.open('/requests')).body;
  expect(page).toContain('No calls in the last 7 days');
  expect((await browser.open('/requests?result=failed')).body).toContain('No call fits');
});

test('a row shows the call, its result with what to do, who called and how long it took', async () => {
  await called(
    { method: 'POST', path: '/api/v1/inboxes/{id}/messages', status: 422, code: 'domain_not_verified' },
    { credentialKind: 'user', credentialId: person.userId, path: '/api/v1/org' },
    { credentialId: 'key_gone', path: '/api/v1/drafts' },
  );
  const page = (await browser.open('/requests')).body;
  expect(page).toContain('POST /api/v1/inboxes/{id}/messages');
  expect(page).toContain('href="/docs/errors#domain_not_verified"');
  expect(page).toContain('look at Domains');
  expect(page).toContain(`href="/keys/${keyId}"`);
  expect(page).toContain('1,234 ms');
  expect(page).toContain('Ada Lovelace');
  expect(page).toContain('Someone who is gone');
  expect(page).not.toContain('href="/keys/key_gone"');
});

test('filters stand in the address: result, status, path, credential and time', async () => {
  await called(
    { path: '/api/v1/first', id: hoursAgo(30) },
    { path: '/api/v1/second', status: 404, code: 'not_found', id: hoursAgo(2) },
    {
      path: '/api/v1/third',
      status: 500,
      code: 'internal',
      credentialKind: 'user',
      credentialId: person.userId,
    },
  );
  const page = async (query: string) => (await browser.open(`/requests?${query}`)).body;
  const shown = async (query: string) =>
    [...(await page(query)).matchAll(/GET \/api\/v1\/(\w+)</g)].map(([, name]) => name);
  expect(await shown('')).toEqual(['third', 'second', 'first']);
  expect(await shown('result=failed')).toEqual(['third', 'second']);
  expect(await shown('result=&status=404&path=&credential=&period=')).toEqual(['second']);
  expect(await shown('path=first')).toEqual(['first']);
  expect(await shown(`credential=${person.userId}`)).toEqual(['third']);
  expect(await shown('period=hour')).toEqual(['third']);
  expect(await shown('period=day')).toEqual(['third', 'second']);
  expect(await page(`credential=${keyId}`)).toContain('Only calls of');
  expect(await page('path=%22%3E%3Cscript%3E')).not.toContain('"><script>');
  expect((await browser.open('/requests?status=abc')).statusCode).toBe(400);
});

test('has pages that keep the filters', async () => {
  await called(...Array.from({ length: 51 }, () => ({ status: 500, code: 'internal' })), {});
  const first = (await browser.open('/requests?result=failed')).body;
  const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first) ?? [];
  expect(next).toContain('result=failed');
  const second = await browser.open(next.replaceAll('&amp;', '&'));
  expect(second.body.match(/<tr><td>/g)).toHaveLength(1);
});

test('shows no call of another organization', async () => {
  const other = await createAccountQuickly(app);
  await called({ organizationId: other.organizationId, path: '/api/v1/foreign' });
  expect((await browser.open('/requests')).body).not.toContain('foreign');
});

test('says what to do about each failure', () => {
  expect(whatToDo('usage_limit_exceeded', 429)).toContain('Usage');
  expect(whatToDo('a_code_of_later', 418)).toContain('answer');
  expect(whatToDo(null, 502)).toContain('repeat');
});
