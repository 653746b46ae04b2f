import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createReturnPaths } from '../../platform/return-path.ts';
import { createTestReceiptService } from '../support/mail-services.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();

async function arrange({ status = 'verified', options = {} }: { status?: string; options?: object } = {}) {
  const organization = await createOrganization(app.worker);
  const { token } = organization;
  const added = await app.call('/domains', {
    method: 'POST',
    token,
    body: { domain_name: `${randomUUID().slice(0, 8)}.example` },
  });
  const { id, domain_name: name } = added.json<{ id: string; domain_name: string }>();
  await query(app.worker, sql`update domains set verification_status = ${status} where id = ${id}`);
  const create = async (body: object = {}) =>
    (await app.call('/inboxes', { method: 'POST', token, body })).json<{ id: string; email: string }>();
  const inbox = await create();
  const setCatchAll = (inboxId: string | null, as = token) =>
    app.call(`/domains/${id}`, { method: 'PATCH', token: as, body: { catch_all_inbox_id: inboxId } });
  const receipts = createTestReceiptService({
    database: app.worker,
    outbox: recordingOutbox().outbox,
    ...options,
  });
  const resolve = (address: string, sender = 'bob@people.example') => receipts.resolve(address, sender);
  const catchAll = async () => expect((await setCatchAll(inbox.id)).statusCode).toBe(200);
  return { organization, token, id, name, inbox, create, setCatchAll, catchAll, resolve };
}

test('the catch-all inbox of a domain receives mail to addresses that no inbox has, until it is cleared', async () => {
  const { name, inbox, create, setCatchAll, resolve } = await arrange();
  expect(await resolve(`guess@${name}`)).toBe('unknown');
  expect((await setCatchAll(inbox.id)).json()).toMatchObject({ catch_all_inbox_id: inbox.id });
  expect(await resolve(`Guess+tag@${name.toUpperCase()}`)).toEqual({
    kind: 'mail',
    organizationId: expect.any(String),
    environmentId: expect.any(String),
    inboxId: inbox.id,
  });
  const named = await create({ email: `named@${name}` });
  expect(await resolve(`named@${name}`)).toMatchObject({ inboxId: named.id });
  expect(await resolve(`guess@sub.${name}`)).toBe('unknown');
  expect((await setCatchAll(null)).json()).toMatchObject({ catch_all_inbox_id: null });
  expect(await resolve(`guess@${name}`)).toBe('unknown');
});

test.each(['postmaster', 'Abuse', 'mailer-daemon', 'bounces', 'bounces+abc', 'no.reply'])(
  'mail to %s is never caught',
  async (local) => {
    const { name, resolve, catchAll } = await arrange();
    await catchAll();
    expect(await resolve(`${local}@${name}`)).toBe('unknown');
  },
);

test('return paths and the address of feedback reports on the same domain keep their own routes', async () => {
  const { organization, name, inbox, catchAll } = await arrange();
  await catchAll();
  const returnPaths = createReturnPaths({ signingKey: app.config.SIGNING_KEY, domain: name });
  const receipts = createTestReceiptService({
    database: app.worker,
    outbox: recordingOutbox().outbox,
    feedbackAddress: `reports@${name}`,
    returnPaths,
  });
  const { token } = organization;
  const body = { to: [{ email: 'ada@people.example' }], text_body: 'Hello' };
  const sent = await app.call(`/inboxes/${inbox.id}/messages`, { method: 'POST', token, body });
  const messageId = sent.json<{ id: string }>().id;
  expect(await receipts.resolve(`reports@${name}`, '')).toEqual({ kind: 'feedback' });
  expect(await receipts.resolve(returnPaths.create(messageId, 0), '')).toMatchObject({
    kind: 'report',
    messageId,
  });
  expect(await receipts.resolve(`guess@${name}`, '')).toMatchObject({ kind: 'mail', inboxId: inbox.id });
});

test('is only for a verified domain, and catches nothing once the domain is not verified any more', async () => {
  const pending = await arrange({ status: 'pending' });
  expectProblem(await pending.setCatchAll(pending.inbox.id), 'domain_not_verified');
  expect((await pending.setCatchAll(null)).statusCode).toBe(200);
  const { id, name, resolve, catchAll } = await arrange();
  await catchAll();
  await query(app.worker, sql`update domains set verification_status = 'failed' where id = ${id}`);
  expect(await resolve(`guess@${name}`)).toBe('unknown');
});

test('is an inbox of the same organization that the credential reaches', async () => {
  const { organization, inbox, create, setCatchAll } = await arrange();
  const foreign = await arrange();
  expectProblem(await setCatchAll(foreign.inbox.id), 'not_found');
  expectProblem(await setCatchAll('inb_unknown'), 'not_found');
  const deleted = await create();
  await app.call(`/inboxes/${deleted.id}`, { method: 'DELETE', token: organization.token });
  expectProblem(await setCatchAll(deleted.id), 'not_found');
  const bound = await createKey(app.worker, {
    ...(organization as TestOrganization),
    environmentId: organization.productionEnvironmentId,
    permissions: ['domains:manage', 'inboxes:read'],
  });
  expectProblem(await setCatchAll(inbox.id, bound.token), 'permission_denied');
  expectProblem(await setCatchAll(inbox.id, foreign.token), 'not_found');
});

test('is null once its inbox is deleted', async () => {
  const { token, id, name, inbox, resolve, catchAll } = await arrange();
  await catchAll();
  await app.call(`/inboxes/${inbox.id}`, { method: 'DELETE', token });
  expect((await app.call(`/domains/${id}`, { token })).json()).toMatchObject({ catch_all_inbox_id: null });
  expect(await resolve(`guess@${name}`)).toBe('unknown');
});

test('follows the receive lists of its inbox', async () => {
  const { token, name, inbox, resolve, catchAll } = await arrange();
  await catchAll();
  const body = { entry: 'people.example', inbox_id: inbox.id };
  expect((await app.call('/lists/receive/block', { method: 'POST', token, body })).statusCode).toBe(201);
  expect(await resolve(`guess@${name}`)).toBe('blocked');
});

test('defers guesses beyond its hourly limit, and nothing else', async () => {
  const { name, inbox, create, resolve, catchAll } = await arrange({ options: { catchAllPerHour: 10 } });
  await catchAll();
  const named = await create({ email: `named@${name}` });
  const guesses = [];
  for (let guess = 0; guess < 40; guess += 1) guesses.push(await resolve(`guess-${guess}@${name}`));
  const caught = guesses.filter((route) => typeof route === 'object' && route.kind === 'mail');
  expect(caught.length).toBeGreaterThanOrEqual(10);
  // One block of credit more than the limit.
  expect(caught.length).toBeLessThanOrEqual(12);
  expect(guesses.at(-1)).toMatchObject({
    kind: 'full',
    limit: 'catch_all_limit',
    route: { inboxId: inbox.id },
  });
  expect(await resolve(`named@${name}`)).toMatchObject({ kind: 'mail', inboxId: named.id });
});

test('leaves half of the receive limit to the addresses that exist', async () => {
  const { organization, token, name, create, resolve, catchAll } = await arrange();
  await catchAll();
  const named = await create({ email: `named@${name}` });
  const body = { counters: { messages_received: { own_limit: 10 } } };
  const limited = await app.call('/org/limits', { method: 'PUT', token, body });
  expect(limited.statusCode).toBe(200);
  const receive = (amount: number) =>
    query(
      app.worker,
      sql`insert into usage_deltas (org_id, counter, at, amount) values (${organization.organizationId}, 'messages_received', now(), ${amount})`,
    );
  await receive(4);
  expect(await resolve(`guess@${name}`)).toMatchObject({ kind: 'mail' });
  await receive(1);
  expect(await resolve(`guess@${name}`)).toMatchObject({ kind: 'full', limit: 'catch_all_limit' });
  expect(await resolve(`named@${name}`)).toMatchObject({ kind: 'mail', inboxId: named.id });
  await receive(5);
  expect(await resolve(`named@${name}`)).toMatchObject({ kind: 'full', limit: 'receive_limit' });
});
