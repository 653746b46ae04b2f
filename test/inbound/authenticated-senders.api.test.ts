import { expect, test } from '@jest/globals';
import type { AcceptedMail, TenantRoute } from '../../domain/inbound/inbound-routes.ts';
import type { Authentication } from '../../domain/inbound/mail-authentication.ts';
import { createTestReceiptService } from '../support/mail-services.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();
const withoutAuthentication = useTestApp({ config: { AUTHENTICATE_INBOUND: 'false' } });

const NONE: Authentication = { spf: 'none', dkim: 'none', dmarc: 'none', arc: 'none', policy: null };
const SENDER = 'bob@people.example';

async function arrange(results: Partial<Authentication> = {}) {
  const organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const { token } = organization;
  const add = (list: string, body: object) => app.call(`/lists/${list}`, { method: 'POST', token, body });
  const receipts = createTestReceiptService({
    database: app.worker,
    outbox: recordingOutbox().outbox,
    authenticate: async () => ({ ...NONE, ...results }),
  });
  const resolve = (address = inbox.email, others: TenantRoute[] = [], options = {}) =>
    receipts.resolve(address, SENDER, others, options);
  return { organization, token, inbox, add, receipts, resolve };
}

test('an entry of the receive allow list may require authentication, and be changed', async () => {
  const { token, add } = await arrange();
  const added = await add('receive/allow', { entry: 'people.example', authenticated: true });
  expect(added.statusCode).toBe(201);
  expect(added.json()).toMatchObject({ entry: 'people.example', authenticated: true });
  expect((await add('receive/allow', { entry: 'people.example' })).json()).toMatchObject({
    authenticated: true,
  });
  const changed = await add('receive/allow', { entry: 'people.example', authenticated: false });
  expect(changed.statusCode).toBe(200);
  expect(changed.json()).toMatchObject({ authenticated: false });
  const list = await app.call('/lists/receive/allow', { token });
  expect(list.json().data).toEqual([
    expect.objectContaining({ entry: 'people.example', authenticated: false }),
  ]);
});

test.each(['receive/block', 'send/allow', 'send/block'])('an entry of %s cannot', async (list) => {
  const { add } = await arrange();
  const refused = expectProblem(
    await add(list, { entry: 'people.example', authenticated: true }),
    'validation_error',
  );
  expect(refused.errors).toEqual([expect.objectContaining({ path: 'authenticated' })]);
  expect((await add(list, { entry: 'people.example', authenticated: false })).statusCode).toBe(201);
});

test('an installation that does not authenticate mail refuses such an entry', async () => {
  const { token } = await createOrganization(withoutAuthentication.worker);
  const body = { entry: 'people.example', authenticated: true };
  const refused = await withoutAuthentication.call('/lists/receive/allow', { method: 'POST', token, body });
  expectProblem(refused, 'validation_error');
});

test('mail of the sender is resolved with the domain that it must be authenticated as', async () => {
  const { inbox, add, resolve, receipts } = await arrange();
  expect(await resolve()).not.toHaveProperty('authenticatedAs');
  await add('receive/allow', { entry: SENDER, authenticated: true });
  expect(await resolve()).toMatchObject({
    kind: 'mail',
    inboxId: inbox.id,
    authenticatedAs: 'people.example',
  });
  expect(await receipts.resolve(inbox.email, 'eve@other.example')).not.toHaveProperty('authenticatedAs');
});

test('it overrides a block of a wider scope, as any allow entry', async () => {
  const { inbox, add, resolve } = await arrange();
  await add('receive/block', { entry: 'people.example' });
  expect(await resolve()).toBe('blocked');
  await add('receive/allow', { entry: 'people.example', inbox_id: inbox.id, authenticated: true });
  expect(await resolve()).toMatchObject({ authenticatedAs: 'people.example' });
});

test('such a recipient needs a transaction of its own, unless the message can be divided', async () => {
  const { organization, inbox, add, resolve } = await arrange();
  const other = await createInbox(app.worker, organization);
  const plain = (await resolve(other.email)) as TenantRoute;
  await add('receive/allow', { entry: 'people.example', inbox_id: inbox.id, authenticated: true });
  expect(await resolve(inbox.email, [plain])).toBe('separately');
  const strict = (await resolve(inbox.email)) as TenantRoute;
  expect(strict).toMatchObject({ authenticatedAs: 'people.example' });
  expect(await resolve(other.email, [strict])).toBe('separately');
  expect(await resolve(inbox.email.replace('@', '+tag@'), [strict])).toMatchObject({ inboxId: inbox.id });
  expect(await resolve(inbox.email, [plain], { isDivisible: true })).toMatchObject({ inboxId: inbox.id });
});

test.each([
  [{ dmarc: 'pass', authorDomain: 'people.example' }, 'authenticated'],
  [{ dmarc: 'fail', authorDomain: 'people.example' }, 'unauthenticated'],
  [{ dmarc: 'temperror' }, 'undetermined'],
])('a message with %j is %s', async (results, expected) => {
  const { add, resolve, receipts } = await arrange(results);
  await add('receive/allow', { entry: 'people.example', authenticated: true });
  const mail = {
    rawKey: 'raw/x',
    sizeBytes: 1,
    clientIp: '192.0.2.1',
    helo: null,
    mailFrom: SENDER,
  } as AcceptedMail;
  expect(await receipts.checkSender(mail, (await resolve()) as TenantRoute)).toBe(expected);
});
