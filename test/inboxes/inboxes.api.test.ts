import { beforeAll, expect, test } from '@jest/globals';
import { sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { countRows } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { startTestApp } from '../support/test-app.ts';

const app = useTestApp();
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});

const create = (body: unknown, token = organization.token) =>
  app.call('/inboxes', { method: 'POST', token, body });
const unique = (name: string) => `${name}-${organization.organizationId.slice(-12)}`;

test('an inbox created by username has the specified fields', async () => {
  const username = unique('Agent');
  const response = await create({ username, display_name: 'Agent One', client_id: 'first' });
  expect(response.statusCode).toBe(201);
  expect(response.json()).toEqual({
    object: 'inbox',
    id: expect.stringMatching(/^inb_[0-9a-z]{26}$/),
    email: `${username.toLowerCase()}@mail.test`,
    username: username.toLowerCase(),
    aliases: [],
    display_name: 'Agent One',
    client_id: 'first',
    env_id: organization.productionEnvironmentId,
    status: 'active',
    send_paused: false,
    send_paused_reason: null,
    send_paused_by: null,
    send_paused_at: null,
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    updated_at: expect.stringMatching(/Z$/),
  });
});

test('an inbox created by email uses name as its display name', async () => {
  const response = await create({ email: `${unique('mail')}@MAIL.test`, name: 'By mail' });
  expect(response.json()).toMatchObject({
    email: `${unique('mail')}@mail.test`,
    username: unique('mail'),
    display_name: 'By mail',
    client_id: null,
  });
});

test('a readable address is generated if none is given', async () => {
  const addresses = await Promise.all([create({}), create({ display_name: 'Random' })]);
  for (const response of addresses)
    expect(response.json<{ email: string }>().email).toMatch(/^[a-z]+-[a-z]+-\d{4}@mail\.test$/);
  expect(addresses[0]?.json<{ email: string }>().email).not.toBe(
    addresses[1]?.json<{ email: string }>().email,
  );
});

test('the two variants cannot be mixed', async () => {
  const problem = expectProblem(
    await create({ username: 'a-name', email: 'b-name@mail.test' }),
    'validation_error',
  );
  expect(problem.errors).toEqual([expect.objectContaining({ path: 'body' })]);
  expectProblem(await create({ username: 'a-name', name: 'x' }), 'validation_error');
  expectProblem(await create({ email: 'b-name@mail.test', display_name: 'x' }), 'validation_error');
});

test.each([
  ['postmaster', 'reserved'],
  ['Abuse', 'reserved'],
  ['bounces', 'reserved'],
  ['no.reply', 'reserved'],
  ['No_Reply', 'reserved'],
  ['mailer_daemon', 'reserved'],
  ['tls.reports', 'reserved'],
  ['s-t-a-f-f', 'reserved'],
  ['billing', 'reserved'],
  ['owner', 'reserved'],
  ['staff', 'reserved'],
  ['ssladmin', 'reserved'],
  ['ssl-webmaster', 'reserved'],
  ['mis', 'reserved'],
  ['a+tag', 'plus'],
  ['.dot', 'begin'],
  ['two..dots', 'dots'],
  ['end.', 'dots'],
  ['with space', 'letters'],
  ['ümlaut', 'letters'],
  ['a\r\nb', 'letters'],
])('rejects the local part %j', async (username) => {
  const problem = expectProblem(await create({ username }), 'validation_error');
  expect(problem.errors).toEqual([expect.objectContaining({ path: 'username' })]);
});

test.each(['mail.test.', 'MAIL.test.', 'ｍail.test', 'mail。test'])(
  'rejects a reserved local part on the shared domain spelled %s',
  async (domain) => {
    expectProblem(await create({ email: `admin@${domain}` }), 'validation_error');
    expectProblem(await create({ username: 'support', domain }), 'validation_error');
    const { email } = (await create({ domain })).json<{ email: string }>();
    expect(email).toMatch(/@mail\.test$/);
  },
);

test('rejects the feedback address in any spelling of its domain', async () => {
  expectProblem(await create({ email: 'complaints@bounces.mail.test.' }), 'validation_error');
});

test('rejects an unverified domain', async () => {
  expectProblem(await create({ email: 'agent@elsewhere.test' }), 'domain_not_verified');
  expectProblem(await create({ username: 'agent', domain: 'elsewhere.test' }), 'domain_not_verified');
});

test('an address is unique across organizations, ignoring case', async () => {
  const username = unique('taken');
  expect((await create({ username })).statusCode).toBe(201);
  expectProblem(await create({ username: username.toUpperCase() }), 'already_exists');
  const otherOrganization = await createOrganization(app.worker);
  expectProblem(await create({ username }, otherOrganization.token), 'already_exists');
});

test('the error for a taken address leads to the own inbox that has it, and to none of another organization', async () => {
  const { id } = (await create({ username: unique('found') })).json();
  const alias = `${unique('found-alias')}@mail.test`;
  const aliased = await app.call(`/inboxes/${id}`, {
    method: 'PATCH',
    token: organization.token,
    body: { aliases: [alias] },
  });
  expect(aliased.statusCode).toBe(200);
  const { token } = await createOrganization(app.worker);
  const { id: other } = (await create({})).json();
  const follow = async (answer: Awaited<ReturnType<typeof create>>, by: string) => {
    const [, path = ''] =
      /GET \/api\/v1(\/\S+)\. /.exec(String(expectProblem(answer, 'already_exists').fix)) ?? [];
    return (await app.call(path, { token: by })).json().data.map((found: { id: string }) => found.id);
  };
  expect(await follow(await create({ username: unique('found') }), organization.token)).toEqual([id]);
  expect(await follow(await create({ email: alias }), organization.token)).toEqual([id]);
  expect(await follow(await create({ email: alias }, token), token)).toEqual([]);
  const asAlias = { method: 'PATCH', token: organization.token, body: { aliases: [alias] } } as const;
  expect(await follow(await app.call(`/inboxes/${other}`, asAlias), organization.token)).toEqual([id]);
});

test('the same client_id returns 200 and the existing inbox, regardless of the other input', async () => {
  const first = await create({ username: unique('client'), client_id: 'again' });
  const second = await create({ username: unique('other'), client_id: 'again' });
  expect([first.statusCode, second.statusCode]).toEqual([201, 200]);
  expect(second.json()).toEqual(first.json());
  const otherOrganization = await createOrganization(app.worker);
  expect((await create({ client_id: 'again' }, otherOrganization.token)).statusCode).toBe(201);
});

test('20 concurrent creations with one client_id create exactly one inbox', async () => {
  const responses = await Promise.all(Array.from({ length: 20 }, () => create({ client_id: 'race' })));
  const statuses = responses.map(({ statusCode }) => statusCode).sort();
  expect(statuses).toEqual([...Array(19).fill(200), 201]);
  expect(new Set(responses.map((response) => response.json<{ id: string }>().id)).size).toBe(1);
});

test('the same client_id in another environment returns the existing inbox', async () => {
  const first = await create({ client_id: 'elsewhere' });
  const response = await app.call('/inboxes', {
    method: 'POST',
    token: organization.token,
    headers: { 'x-env-id': organization.sandboxEnvironmentId },
    body: { client_id: 'elsewhere' },
  });
  expect(response.statusCode).toBe(200);
  expect(response.json()).toEqual(first.json());
});

test('a client_id of an inbox that the credential cannot reach is a conflict', async () => {
  await create({ client_id: 'hidden' });
  const other = await createInbox(app.worker, organization);
  const { organizationId, productionEnvironmentId, sandboxEnvironmentId } = organization;
  const bindings = [
    { environmentId: sandboxEnvironmentId },
    { environmentId: productionEnvironmentId, inboxId: other.id },
  ];
  for (const binding of bindings) {
    const { token } = await createKey(app.worker, { organizationId, ...binding });
    expectProblem(await create({ client_id: 'hidden' }, token), 'already_exists');
  }
});

test('a key bound to an inbox sees only that inbox and cannot create another', async () => {
  const inbox = await createInbox(app.worker, organization);
  const other = await createInbox(app.worker, organization);
  const { token } = await createKey(app.worker, {
    organizationId: organization.organizationId,
    environmentId: organization.productionEnvironmentId,
    inboxId: inbox.id,
  });
  expectProblem(await create({}, token), 'permission_denied');
  expectProblem(await app.call(`/inboxes/${other.id}`, { token }), 'not_found');
  expect((await app.call(`/inboxes/${inbox.id}`, { token })).statusCode).toBe(200);
  const list = await app.call('/inboxes', { token });
  expect(list.json<{ data: { id: string }[] }>().data.map(({ id }) => id)).toEqual([inbox.id]);
});

test('the display name can be changed, and null clears it', async () => {
  const inbox = await createInbox(app.worker, organization);
  const patch = (body: unknown) =>
    app.call(`/inboxes/${inbox.id}`, { method: 'PATCH', token: organization.token, body });
  expect((await patch({ display_name: 'New' })).json()).toMatchObject({ display_name: 'New' });
  expect((await patch({})).json()).toMatchObject({ display_name: 'New' });
  expect((await patch({ display_name: null })).json()).toMatchObject({ display_name: null });
  expectProblem(await patch({ display_name: 'a\r\nBcc: x@y.test' }), 'validation_error');
  expectProblem(await patch({ email: 'new@mail.test' }), 'validation_error');
});

test('a deleted inbox is gone, and its address stays reserved for its organization', async () => {
  const username = unique('deleted');
  const { id } = (await create({ username, client_id: 'deleted' })).json<{ id: string }>();
  const remove = () => app.call(`/inboxes/${id}`, { method: 'DELETE', token: organization.token });
  const response = await remove();
  expect([response.statusCode, response.body]).toEqual([204, '']);
  expectProblem(await remove(), 'not_found');
  expectProblem(await app.call(`/inboxes/${id}`, { token: organization.token }), 'not_found');
  const otherOrganization = await createOrganization(app.worker);
  expectProblem(await create({ username }, otherOrganization.token), 'already_exists');
  const recreated = await create({ username, client_id: 'deleted' });
  expect(recreated.statusCode).toBe(201);
  expect(recreated.json<{ id: string }>().id).not.toBe(id);
});

test('deleting an inbox cancels its queued messages', async () => {
  const inbox = await createInbox(app.worker, organization);
  const sent = await app.call(`/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    token: organization.token,
    body: { to: [{ email: 'someone@example.test' }], subject: 'Queued' },
  });
  const { id } = sent.json<{ id: string }>();
  await app.call(`/inboxes/${inbox.id}`, { method: 'DELETE', token: organization.token });
  const read = await app.call(`/messages/${id}`, { token: organization.token });
  expect(read.json()).toMatchObject({ status: 'canceled', recipients: [{ status: 'rejected' }] });
  expect(app.commands).toContainEqual({
    signal: { workflowId: sendMessageWorkflowId(id), signalName: 'cancel', args: [] },
  });
  await app.worker.systemTransaction(async ({ db }) => {
    expect(
      await countRows(
        db.selectFrom('messages').select('id').where('id', '=', id).where('status', '=', 'canceled'),
      ),
    ).toBe(1);
    expect(
      await countRows(
        db
          .selectFrom('message_recipients')
          .select('message_id')
          .where('message_id', '=', id)
          .where('status', '=', 'pending'),
      ),
    ).toBe(0);
  });
});

test('no inbox can use the configured feedback address', async () => {
  const customApp = await startTestApp({ config: { FEEDBACK_ADDRESS: 'FBL@mail.test' } });
  const createInCustomApp = (body: unknown) =>
    customApp.call('/inboxes', { method: 'POST', token: organization.token, body });
  expectProblem(await createInCustomApp({ username: 'fbl' }), 'validation_error');
  expectProblem(await createInCustomApp({ email: 'Fbl@Mail.test' }), 'validation_error');
  expectProblem(await createInCustomApp({ username: 'complaints' }), 'validation_error');
  await customApp.close();
});

test('inboxes are found by a part of the address or name, and by state', async () => {
  const own = await createOrganization(app.worker);
  const [paused, named] = [await createInbox(app.worker, own), await createInbox(app.worker, own)];
  await app.worker.db
    .updateTable('inboxes')
    .set({ send_paused: true, send_paused_reason: 'too many bounces' })
    .where('id', '=', paused.id)
    .execute();
  await app.worker.db
    .updateTable('inboxes')
    .set({ display_name: '100%_Sure Agent' })
    .where('id', '=', named.id)
    .execute();
  const find = async (query: string) =>
    (await app.call(`/inboxes?${query}`, { token: own.token }))
      .json<{ data: { id: string }[] }>()
      .data.map(({ id }) => id);
  expect(await find('q=0%25_sUR')).toEqual([named.id]);
  expect(await find('q=%25_%25')).toEqual([]);
  expect(await find(`q=${paused.username.slice(2).toUpperCase()}`)).toEqual([paused.id]);
  expect(await find('send_paused=true')).toEqual([paused.id]);
  expect(await find('send_paused=false&status=active')).toEqual([named.id]);
  expect(await find('status=suspended')).toEqual([]);
  expectProblem(await app.call('/inboxes?status=purging', { token: own.token }), 'validation_error');
});
