import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { SuppressionEntity } from '../../domain/deliverability/suppression.entity.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { accepted, deferred, refused } from '../support/mail-services.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce, readMessageState } from '../support/outbound-mail.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp, useWorkerDatabase } from '../support/resources.ts';

const app = useTestApp();
const database = useWorkerDatabase();

type Json = Record<string, unknown>;
const organization = () => createOrganization(database);
const add = ({ token }: Pick<TestOrganization, 'token'>, email: string) =>
  app.call('/suppressions', { method: 'POST', token, body: { email } });
const listed = async (token: string, query = '') =>
  (await app.call(`/suppressions${query}`, { token })).json<{ data: Json[] }>().data;

const suppressions = (organizationId: string) =>
  database.db
    .selectFrom('suppressions')
    .select(columnsOf(SuppressionEntity))
    .where('org_id', '=', organizationId)
    .orderBy('email')
    .execute();
const eventsOf = (organizationId: string) =>
  database.db
    .selectFrom('events')
    .select(columnsOf(EventEntity))
    .where('org_id', '=', organizationId)
    .orderBy('id')
    .execute();

describe('manual suppressions', () => {
  test('suppress a normalized address once and can be removed', async () => {
    const own = await organization();
    const first = await add(own, 'Ada@BÜCHER.example');
    expect(first.statusCode).toBe(201);
    expect(first.json()).toEqual({
      object: 'suppression',
      email: 'ada@xn--bcher-kva.example',
      origin: 'manual',
      scope: 'organization',
      message_id: null,
      inbox_id: null,
      env_id: null,
      status: null,
      diagnostic: null,
      created_at: expect.any(String),
    });
    const again = await add(own, 'ada@bücher.example');
    expect(again.statusCode).toBe(200);
    expect(again.json()).toEqual(first.json());
    expect(await listed(own.token, '?email=ADA@b%C3%BCcher.example')).toHaveLength(1);
    const path = `/suppressions/${encodeURIComponent('ada@Bücher.example')}`;
    expect((await app.call(path, { method: 'DELETE', token: own.token })).statusCode).toBe(204);
    expectProblem(await app.call(path, { method: 'DELETE', token: own.token }), 'not_found');
    expect(await listed(own.token)).toEqual([]);
  });

  test.each(['', 'ada', 'people.example', 'a@b@c', 'ada@people.example\r\nBcc: x@y.example'])(
    'reject %j, which is not an address',
    async (email) => expectProblem(await add(await organization(), email), 'validation_error'),
  );

  test('are paginated, newest first, and filtered by origin', async () => {
    const own = await organization();
    for (const name of ['a', 'b', 'c']) await add(own, `${name}@people.example`);
    const first = await app.call('/suppressions?limit=2', { token: own.token });
    const { data, next_cursor } = first.json<{ data: Json[]; next_cursor: string }>();
    expect(data.map(({ email }) => email)).toEqual(['c@people.example', 'b@people.example']);
    const rest = await listed(own.token, `?limit=2&cursor=${next_cursor}`);
    expect(rest.map(({ email }) => email)).toEqual(['a@people.example']);
    expect(await listed(own.token, '?origin=complaint')).toEqual([]);
  });

  test('are found by a part of the address, in any case, without wildcards', async () => {
    const own = await organization();
    for (const email of ['ada.lovelace@people.example', 'bob_1@other.example']) await add(own, email);
    const found = async (search: string) =>
      (await listed(own.token, `?search=${encodeURIComponent(search)}`)).map(({ email }) => email);
    expect(await found('LOVELACE@peo')).toEqual(['ada.lovelace@people.example']);
    expect(await found('.example')).toHaveLength(2);
    expect(await found('%')).toEqual([]);
    expect(await found('b_1')).toEqual(['bob_1@other.example']);
    expect(await found('b_b')).toEqual([]);
  });

  test('are removed with a reason, which the audit log keeps', async () => {
    const own = await organization();
    await add(own, 'ada@people.example');
    const path = '/suppressions/ada%40people.example?reason=Asked%20us%20to%20write%20again';
    expect((await app.call(path, { method: 'DELETE', token: own.token })).statusCode).toBe(204);
    const log = await app.call('/org/audit-log?action=suppression.removed', { token: own.token });
    expect(log.json().data).toEqual([
      expect.objectContaining({
        resource: expect.objectContaining({ id: 'ada@people.example' }),
        reason: 'Asked us to write again',
      }),
    ]);
  });

  test('are visible to a bound credential only if they originate in its scope', async () => {
    const own = await organization();
    await add(own, 'ada@people.example');
    const bound = await createKey(database, { ...own, environmentId: own.sandboxEnvironmentId });
    expect(await listed(bound.token)).toEqual([]);
    const path = '/suppressions/ada%40people.example';
    expectProblem(await app.call(path, { method: 'DELETE', token: bound.token }), 'not_found');
    expect((await add(bound, 'bob@people.example')).json()).toMatchObject({
      env_id: own.sandboxEnvironmentId,
    });
    expect(await listed(own.token)).toHaveLength(2);
  });

  test('require separate permissions to read and to change', async () => {
    const own = await organization();
    const reader = await createKey(database, { ...own, permissions: ['suppressions:read'] });
    expect(await listed(reader.token)).toEqual([]);
    expectProblem(await add(reader, 'ada@people.example'), 'permission_denied');
  });
});

describe('suppressions on the send request', () => {
  const send = async (own: TestOrganization, inboxId: string, recipients: Json) =>
    app.call(`/inboxes/${inboxId}/messages`, {
      method: 'POST',
      token: own.token,
      body: { subject: 'Hello', text_body: 'Text', ...recipients },
    });
  const arrange = async () => {
    const own = await organization();
    const inbox = (await app.call('/inboxes', { method: 'POST', token: own.token, body: {} })).json<{
      id: string;
      email: string;
    }>();
    return { own, inbox };
  };

  test('refuse a message whose recipients are all suppressed, with the specified event', async () => {
    const { own, inbox } = await arrange();
    await add(own, 'ada@people.example');
    await add(own, 'bob@people.example');
    const response = await send(own, inbox.id, {
      to: [{ email: 'ADA@people.example' }],
      bcc: [{ email: 'bob@People.Example' }, { email: 'Bob@people.example' }],
    });
    expect(expectProblem(response, 'message_rejected')).toMatchObject({
      rejection_reason: 'blocked_recipient',
    });
    const events = await eventsOf(own.organizationId);
    expect(events.map(({ type, data }) => ({ type, data }))).toEqual([
      {
        type: 'message.rejected',
        data: {
          inbox_id: inbox.id,
          from_address: inbox.email,
          to_addresses: ['ADA@people.example'],
          subject: 'Hello',
          rejection_reason: 'blocked_recipient',
          rejection_detail: expect.stringContaining('bob@people.example (manual)'),
          rejected_at: expect.any(String),
        },
      },
    ]);
    const messages = await app.call(`/inboxes/${inbox.id}/messages`, { token: own.token });
    expect(messages.json()).toMatchObject({ data: [] });
  });

  test('stop applying when they are removed, and a refused draft is kept', async () => {
    const { own, inbox } = await arrange();
    await add(own, 'ada@people.example');
    const draft = await app.call(`/inboxes/${inbox.id}/drafts`, {
      method: 'POST',
      token: own.token,
      body: { to: [{ email: 'ada@people.example' }] },
    });
    const path = `/drafts/${draft.json<{ id: string }>().id}/send`;
    expectProblem(await app.call(path, { method: 'POST', token: own.token }), 'message_rejected');
    await app.call('/suppressions/ada%40people.example', { method: 'DELETE', token: own.token });
    expect((await app.call(path, { method: 'POST', token: own.token })).statusCode).toBe(201);
  });

  test('do not apply to other organizations', async () => {
    await add(await organization(), 'ada@people.example');
    const { own, inbox } = await arrange();
    expect((await send(own, inbox.id, { to: [{ email: 'ada@people.example' }] })).statusCode).toBe(201);
  });
});

describe('suppressions at dispatch', () => {
  const suppress = (organizationId: string, ...emails: string[]) =>
    database.systemTransaction(async ({ db }) => {
      for (const email of emails)
        await query(
          { db },
          sql`insert into suppressions (id, org_id, scope_id, email, origin, status, created_at)
           values (${`sup_${email}${organizationId}`}, ${organizationId}, ${organizationId}, ${email}, 'bounce', '5.1.1', now())`,
        );
    });

  test('skip a suppressed recipient among others and report it as bounced', async () => {
    const world = await arrangeSending(database);
    await suppress(world.scope.organizationId, 'bad@people.example');
    const id = await world.send('ada@people.example', 'Bad@people.example');
    await expect(dispatchOnce(world, id)).resolves.toBe('settled');
    expect(world.transport.transmissions.map(({ recipient }) => recipient)).toEqual(['ada@people.example']);
    const state = await readMessageState(database, id);
    expect(state).toMatchObject({ status: 'bounced', recipients: ['sent', 'suppressed'] });
    expect(state.types).toEqual(['message.bounced', 'message.sent']);
    expect(state.events[0]?.data).toEqual({
      message_id: id,
      thread_id: state.message.threadId,
      inbox_id: world.inbox.id,
      bounce_type: 'Permanent',
      bounce_sub_type: 'Suppressed',
      bounced_recipients: [
        {
          email_address: 'Bad@people.example',
          status: '5.1.1',
          diagnostic_code: 'Not sent: the address is suppressed (bounce).',
        },
      ],
      bounced_at: expect.any(String),
    });
    // A skipped recipient does not count against the inbox again.
    expect(await suppressions(world.scope.organizationId)).toHaveLength(1);
  });

  test('set a status code even for a manual suppression', async () => {
    const world = await arrangeSending(database);
    await suppress(world.scope.organizationId, 'bad@people.example');
    await query(
      database,
      sql`update suppressions set origin = 'manual', status = null where org_id = ${world.scope.organizationId}`,
    );
    const id = await world.send('ada@people.example', 'bad@people.example');
    await expect(dispatchOnce(world, id)).resolves.toBe('settled');
    const [bounced] = (await readMessageState(database, id)).events;
    expect(bounced?.data).toMatchObject({ bounced_recipients: [{ status: '5.1.1' }] });
  });

  test('reject the message if all recipients were suppressed after the request', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example', 'bob@people.example');
    await suppress(world.scope.organizationId, 'ada@people.example', 'bob@people.example');
    await expect(world.dispatch.prepare(id)).resolves.toBe('finished');
    const state = await readMessageState(database, id);
    expect(state).toMatchObject({ status: 'rejected', recipients: ['rejected', 'rejected'] });
    expect(state.types).toEqual(['message.rejected']);
    expect(state.events[0]?.data).toMatchObject({ rejection_reason: 'blocked_recipient' });
  });

  test('stop retries for a deferred recipient', async () => {
    const world = await arrangeSending(database);
    world.transport.answerWith(async ({ recipient }) => (recipient.startsWith('bob') ? deferred : accepted));
    const id = await world.send('ada@people.example', 'bob@people.example');
    await expect(dispatchOnce(world, id)).resolves.toBe('deferred');
    await suppress(world.scope.organizationId, 'bob@people.example');
    await expect(world.dispatch.prepare(id)).resolves.toBe('finished');
    const state = await readMessageState(database, id);
    expect(state).toMatchObject({ status: 'bounced', recipients: ['sent', 'suppressed'] });
    expect(state.types).toEqual(['message.sent', 'message.bounced']);
  });
});

describe('suppressions by outcome', () => {
  const outcome = (
    kind: 'bounced' | 'complained',
    statusCode: string | null,
    diagnosticCode = 'no such user',
  ) => ({ position: 0, kind, statusCode, diagnosticCode }) as const;

  test('are created for a refused recipient, with their origin', async () => {
    const world = await arrangeSending(database);
    world.transport.answerWith(async () => refused);
    const id = await world.send('Ada@People.example');
    await dispatchOnce(world, id);
    expect(await suppressions(world.scope.organizationId)).toEqual([
      expect.objectContaining({
        email: 'ada@people.example',
        origin: 'bounce',
        messageId: id,
        inboxId: world.inbox.id,
        environmentId: world.inbox.environmentId,
        status: '5.1.1',
        diagnostic: '550 5.1.1 no such user',
      }),
    ]);
  });

  test.each([
    ['5.1.1', 'no such user', true],
    ['5.1.2', 'no such domain', true],
    ['5.1.10', 'null MX', true],
    ['5.2.1', 'mailbox disabled', true],
    ['5.7.1', 'blocked by policy', false],
    ['5.7.26', 'DMARC', false],
    ['5.3.4', 'message too big', false],
    ['5.2.2', 'mailbox full', false],
    ['4.4.7', 'expired', false],
  ])('a bounce with %s (%s) suppresses the address: %s', async (status, words, suppresses) => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await dispatchOnce(world, id);
    await database.systemTransaction((transaction) =>
      world.outcomes.apply(transaction, id, [outcome('bounced', status, words)]),
    );
    expect(await suppressions(world.scope.organizationId)).toHaveLength(suppresses ? 1 : 0);
  });

  test('are created once by two concurrent reports; a complaint replaces a bounce', async () => {
    const world = await arrangeSending(database);
    const ids = await Promise.all([1, 2, 3, 4].map(() => world.send('ada@people.example')));
    for (const id of ids) await dispatchOnce(world, id);
    const apply = (id: string, reported: ReturnType<typeof outcome>) =>
      database.systemTransaction((transaction) => world.outcomes.apply(transaction, id, [reported]));
    await Promise.all(ids.map((id) => apply(id, outcome('bounced', '5.1.1'))));
    expect(await suppressions(world.scope.organizationId)).toMatchObject([{ origin: 'bounce' }]);
    await Promise.all(ids.map((id) => apply(id, outcome('complained', null))));
    expect(await suppressions(world.scope.organizationId)).toMatchObject([
      { origin: 'complaint', email: 'ada@people.example' },
    ]);
  });

  test.each(['bounced', 'complained'])('are never created for the simulator’s %s@', async (name) => {
    const world = await arrangeSending(database);
    const id = await world.send(`${name}+x@Simulator.mail.test`);
    await dispatchOnce(world, id);
    expect((await readMessageState(database, id)).status).toBe(name);
    expect(await suppressions(world.scope.organizationId)).toEqual([]);
    const repeated = await world.send(`${name}+x@simulator.mail.test`);
    await dispatchOnce(world, repeated);
    expect((await readMessageState(database, repeated)).status).toBe(name);
  });
});
