import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import type { Inbox } from '../../domain/inboxes/inbox.entity.ts';
import { InboxEntity } from '../../domain/inboxes/inbox.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { createTestReceiptService } from '../support/mail-services.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});

const unique = (name: string) => `${name}-${randomUUID().slice(0, 8)}@mail.test`;

async function create({ token }: Pick<TestOrganization, 'token'> = organization) {
  const response = await app.call('/inboxes', { method: 'POST', token, body: {} });
  expect(response.statusCode).toBe(201);
  return response.json<{ id: string; email: string; env_id: string; aliases: string[] }>();
}

const setAliases = (inboxId: string, aliases: unknown, token = organization.token) =>
  app.call(`/inboxes/${inboxId}`, { method: 'PATCH', token, body: { aliases } });

const resolve = (address: string) =>
  createTestReceiptService({ database: app.worker, outbox: recordingOutbox().outbox }).resolve(
    address,
    'bob@people.example',
  );

async function addDomain({ organizationId }: TestOrganization, status = 'verified') {
  const id = `dom_${randomUUID()}`;
  const name = `${randomUUID().slice(0, 8)}.example`;
  await query(
    app.worker,
    sql`insert into domains
      (id, org_id, domain_name, ownership_token, verification_status, observed, generation_started_at, created_at, updated_at)
      values (${id}, ${organizationId}, ${name}, 'x', ${status}, '{}', now(), now(), now())`,
  );
  return { id, name };
}

describe('aliases of an inbox', () => {
  test('receive its mail, also with a plus-tag, until they are removed', async () => {
    const inbox = await create();
    const [one, two] = [unique('one'), unique('two')];
    const response = await setAliases(inbox.id, [one.toUpperCase(), two]);
    expect(response.json()).toMatchObject({ email: inbox.email, aliases: [one, two] });
    for (const address of [inbox.email, one, two.replace('@', '+tag@').toUpperCase()])
      expect(await resolve(address)).toMatchObject({ kind: 'mail', inboxId: inbox.id });
    expect((await setAliases(inbox.id, [two])).json()).toMatchObject({ aliases: [two] });
    expect(await resolve(one)).toBe('unknown');
    expect(await resolve(two)).toMatchObject({ inboxId: inbox.id });
  });

  test('are kept by a change of another field', async () => {
    const inbox = await create();
    const alias = unique('kept');
    await setAliases(inbox.id, [alias]);
    const body = { display_name: 'Agent' };
    const changed = await app.call(`/inboxes/${inbox.id}`, {
      method: 'PATCH',
      token: organization.token,
      body,
    });
    expect(changed.json()).toMatchObject({ display_name: 'Agent', aliases: [alias] });
  });

  test('find the inbox in the list', async () => {
    const inbox = await create();
    const alias = unique('found');
    await setAliases(inbox.id, [alias]);
    const list = await app.call(`/inboxes?email=${alias.toUpperCase()}`, { token: organization.token });
    expect(list.json().data).toEqual([expect.objectContaining({ id: inbox.id })]);
  });

  test('belong to one inbox of all organizations, and stay reserved for the organization afterwards', async () => {
    const [inbox, other] = [await create(), await create()];
    const stranger = await createOrganization(app.worker);
    const strangers = await create(stranger);
    const alias = unique('taken');
    await setAliases(inbox.id, [alias]);
    expectProblem(await setAliases(other.id, [alias]), 'already_exists');
    expectProblem(await setAliases(other.id, [inbox.email]), 'already_exists');
    const token = organization.token;
    expectProblem(
      await app.call('/inboxes', { method: 'POST', token, body: { email: alias } }),
      'already_exists',
    );
    await app.call(`/inboxes/${inbox.id}`, { method: 'DELETE', token });
    expect(await resolve(alias)).toBe('unknown');
    expectProblem(await setAliases(strangers.id, [alias], stranger.token), 'already_exists');
    expect((await setAliases(other.id, [alias])).json()).toMatchObject({ aliases: [alias] });
  });

  test('change whole or not at all', async () => {
    const [inbox, other] = [await create(), await create()];
    const [kept, added] = [unique('kept'), unique('added')];
    await setAliases(inbox.id, [kept]);
    expectProblem(await setAliases(inbox.id, [added, other.email]), 'already_exists');
    expect(await resolve(kept)).toMatchObject({ inboxId: inbox.id });
    expect(await resolve(added)).toBe('unknown');
  });

  test.each([
    ['a reserved name', ['postmaster@mail.test'], 'aliases[0]'],
    ['the address of feedback reports', ['complaints@bounces.mail.test'], 'aliases[0]'],
    ['a plus-tag', ['ada+x@mail.test'], 'aliases[0]'],
    ['no address', ['a-fine-name@mail.test', 'ada'], 'aliases[1]'],
    ['a repetition', ['same-one@mail.test', 'SAME-one@mail.test.'], 'aliases[1]'],
    ['too many', Array.from({ length: 21 }, (_, index) => `a${index}@mail.test`), 'aliases'],
    ['no list', 'ada@mail.test', 'aliases'],
  ])('refuse %s', async (_name, aliases, path) => {
    const inbox = await create();
    const problem = expectProblem(await setAliases(inbox.id, aliases), 'validation_error');
    expect(problem.errors).toEqual([expect.objectContaining({ path })]);
    expect((await app.call(`/inboxes/${inbox.id}`, { token: organization.token })).json()).toMatchObject({
      aliases: [],
    });
  });

  test('refuse the own address, unverified domains, and the shared domain for an inbox that is not on it', async () => {
    const owner = await createOrganization(app.worker);
    const inbox = await create(owner);
    expectProblem(await setAliases(inbox.id, [inbox.email], owner.token), 'validation_error');
    const pending = await addDomain(owner, 'pending');
    for (const name of [pending.name, 'unknown.example'])
      expectProblem(await setAliases(inbox.id, [`ada@${name}`], owner.token), 'domain_not_verified');
    const { name } = await addDomain(owner);
    expect((await setAliases(inbox.id, [`ada@${name}`], owner.token)).json()).toMatchObject({
      aliases: [`ada@${name}`],
    });
    const token = owner.token;
    const own = await app.call('/inboxes', { method: 'POST', token, body: { email: `bob@${name}` } });
    expectProblem(await setAliases(own.json().id, [unique('shared')], token), 'validation_error');
  });

  test('keep their domain from being deleted', async () => {
    const owner = await createOrganization(app.worker);
    const inbox = await create(owner);
    const domain = await addDomain(owner);
    await setAliases(inbox.id, [`ada@${domain.name}`], owner.token);
    const remove = () => app.call(`/domains/${domain.id}`, { method: 'DELETE', token: owner.token });
    expect(expectProblem(await remove(), 'conflict')).toMatchObject({ inboxes: 1 });
    await setAliases(inbox.id, [], owner.token);
    expect((await remove()).statusCode).toBe(204);
  });

  test('count as inboxes of the plan, also when two requests add one at once', async () => {
    const owner = await createOrganization(app.worker);
    const [inbox, other] = [await create(owner), await create(owner)];
    // Its limit is 5 inboxes.
    await query(app.worker, sql`update organizations set tier = 'free' where id = ${owner.organizationId}`);
    const token = owner.token;
    const added = await Promise.all([
      setAliases(inbox.id, [unique('a'), unique('b')], token),
      setAliases(other.id, [unique('c'), unique('d')], token),
    ]);
    const refused = added.filter(({ statusCode }) => statusCode !== 200);
    expect(refused).toHaveLength(1);
    expect(expectProblem(refused[0] as (typeof added)[0], 'plan_limit_reached')).toMatchObject({
      counter: 'inboxes',
    });
    const limits = await app.call('/org/limits', { token });
    expect(limits.json().inboxes).toMatchObject({ current: 4, limit: 5 });
  });

  test('are not for a key that is bound to the inbox', async () => {
    const inbox = await create();
    const { token } = await createKey(app.worker, {
      ...organization,
      environmentId: inbox.env_id,
      inboxId: inbox.id,
      permissions: ['inboxes:read', 'inboxes:write'],
    });
    expectProblem(await setAliases(inbox.id, [unique('mine')], token), 'permission_denied');
    const body = { display_name: 'Mine' };
    const renamed = await app.call(`/inboxes/${inbox.id}`, { method: 'PATCH', token, body });
    expect(renamed.statusCode).toBe(200);
  });

  test('may be exchanged by two inboxes at once: each request changes all or nothing, and none fails for another reason', async () => {
    const [one, other] = [await create(), await create()];
    const [a, b] = [unique('a'), unique('b')];
    for (let round = 0; round < 5; round += 1) {
      await setAliases(one.id, [a]);
      await setAliases(other.id, [b]);
      const answers = await Promise.all([setAliases(one.id, [b]), setAliases(other.id, [a])]);
      for (const answer of answers.filter(({ statusCode }) => statusCode !== 200))
        expectProblem(answer, 'already_exists');
      await setAliases(one.id, []);
      await setAliases(other.id, []);
    }
  });

  test('survive two requests at once: what the inbox lists is what it receives', async () => {
    const inbox = await create();
    const lists = Array.from({ length: 5 }, () => [unique('race'), unique('race')]);
    await Promise.all(lists.map((aliases) => setAliases(inbox.id, aliases)));
    const { aliases } = (await app.call(`/inboxes/${inbox.id}`, { token: organization.token })).json();
    const reached: string[] = [];
    for (const address of lists.flat()) if ((await resolve(address)) !== 'unknown') reached.push(address);
    expect(reached.sort()).toEqual(aliases.toSorted());
  });
});

async function findLastEvent(type: string): Promise<unknown> {
  const [event] = await query<{ data: unknown }>(
    app.worker,
    sql`select data from events where org_id = ${organization.organizationId} and type = ${type} order by id desc limit 1`,
  );
  return event?.data;
}

describe('a reply', () => {
  async function receiveAt(rcptTo: (aliases: string[], own: string) => string) {
    const inbox = await create();
    const aliases = [unique('sales'), unique('help')];
    await setAliases(inbox.id, aliases);
    const row = await app.worker.db
      .selectFrom('inboxes')
      .select(columnsOf(InboxEntity))
      .where('id', '=', inbox.id)
      .executeTakeFirstOrThrow();
    const { receive } = await arrangeInbox(app.worker, {}, row as Inbox);
    const to = rcptTo(aliases, inbox.email);
    const { message } = await receive(
      mail({ To: `${to}, ${inbox.email}, ${aliases[0]}, eve@people.example` }),
      {
        rcptTo: to,
      },
    );
    return { inbox, aliases, messageId: message?.id as string };
  }
  const reply = (messageId: string, body: object = {}) =>
    app.call(`/messages/${messageId}/reply`, {
      method: 'POST',
      token: organization.token,
      body: { text_body: 'Hello', ...body },
    });

  test('leaves from the alias that the message was written to, and not to another address of the inbox', async () => {
    const { aliases, messageId } = await receiveAt(([first]) => `${first?.replace('@', '+tag@')}`);
    const received = await app.call(`/messages/${messageId}`, { token: organization.token });
    expect(received.json()).toMatchObject({ delivered_to: aliases[0]?.replace('@', '+tag@') });
    const sent = (await reply(messageId, { reply_all: true })).json();
    expect(sent).toMatchObject({
      from_address: { email: aliases[0] },
      to_addresses: ['ada@people.example'],
      cc_addresses: ['eve@people.example'],
      delivered_to: null,
    });
    expect(sent.rfc_message_id).toMatch(/@mail\.test$/);
    const next = (await reply(sent.id)).json();
    expect(next).toMatchObject({ from_address: { email: aliases[0] } });
  });

  test('as a scheduled draft leaves from the alias, too', async () => {
    const { aliases, inbox, messageId } = await receiveAt(([, second]) => `${second}`);
    const token = organization.token;
    const draft = await app.call(`/inboxes/${inbox.id}/drafts`, {
      method: 'POST',
      token,
      body: { in_reply_to: messageId, to: [{ email: 'ada@people.example' }], text_body: 'Hello' },
    });
    const sent = await app.call(`/drafts/${draft.json().id}/send`, { method: 'POST', token, body: {} });
    expect(sent.json()).toMatchObject({ from_address: { email: aliases[1] } });
  });

  test('leaves from the address of the inbox if the mail came there', async () => {
    const { inbox, messageId } = await receiveAt((_aliases, own) => own);
    expect((await reply(messageId)).json()).toMatchObject({ from_address: { email: inbox.email } });
  });

  test('that waits for approval shows the person the sender that it will have', async () => {
    const { aliases, messageId } = await receiveAt(([first]) => `${first}`);
    const token = organization.token;
    await setPolicies(app.worker, organization.organizationId, { require_send_approval: 'all' });
    try {
      const waiting = await reply(messageId);
      expect(waiting.statusCode).toBe(202);
      const preview = await app.call(`/drafts/${waiting.json().id}/preview`, { token });
      expect(preview.json()).toMatchObject({ from_address: aliases[0] });
      expect(await findLastEvent('draft.pending_approval')).toMatchObject({
        draft_id: waiting.json().id,
        from_address: aliases[0],
      });
    } finally {
      await setPolicies(app.worker, organization.organizationId, { require_send_approval: 'off' });
    }
  });

  test('that is refused names the sender that it would have had', async () => {
    const { aliases, messageId } = await receiveAt(([first]) => `${first}`);
    const token = organization.token;
    const body = { entry: 'people.example' };
    expect((await app.call('/lists/send/block', { method: 'POST', token, body })).statusCode).toBe(201);
    try {
      expectProblem(await reply(messageId), 'message_rejected');
      expect(await findLastEvent('message.rejected')).toMatchObject({ from_address: aliases[0] });
    } finally {
      await app.call('/lists/send/block/people.example', { method: 'DELETE', token });
    }
  });

  test('leaves from the address of the inbox once the alias is gone', async () => {
    const { inbox, messageId } = await receiveAt(([first]) => `${first}`);
    await setAliases(inbox.id, []);
    expect((await reply(messageId)).json()).toMatchObject({ from_address: { email: inbox.email } });
  });

  test('is refused while the domain of the alias is not verified', async () => {
    const owner = organization;
    const domain = await addDomain(owner);
    const inbox = await create();
    const alias = `ada@${domain.name}`;
    await setAliases(inbox.id, [alias]);
    const row = await app.worker.db
      .selectFrom('inboxes')
      .select(columnsOf(InboxEntity))
      .where('id', '=', inbox.id)
      .executeTakeFirstOrThrow();
    const { receive } = await arrangeInbox(app.worker, {}, row as Inbox);
    const { message } = await receive(mail({ To: alias }), { rcptTo: alias });
    const messageId = message?.id as string;
    expect((await reply(messageId)).json()).toMatchObject({ from_address: { email: alias } });
    await query(app.worker, sql`update domains set verification_status = 'failed' where id = ${domain.id}`);
    expectProblem(await reply(messageId), 'domain_not_verified');
    const body = { to: [{ email: 'ada@people.example' }], text_body: 'Hello' };
    const token = organization.token;
    const other = await app.call(`/inboxes/${inbox.id}/messages`, { method: 'POST', token, body });
    expect(other.statusCode).toBe(201);
  });
});
