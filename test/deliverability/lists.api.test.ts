import { describe, expect, test } from '@jest/globals';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createTestReceiptService } from '../support/mail-services.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce, readMessageState } from '../support/outbound-mail.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();

type Json = Record<string, unknown>;

async function arrange() {
  const own = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, own);
  const add = (list: string, body: Json, token = own.token) =>
    app.call(`/lists/${list}`, { method: 'POST', token, body });
  const entries = async (list: string, query = '', token = own.token) =>
    (await app.call(`/lists/${list}${query}`, { token })).json<{ data: Json[] }>().data;
  const remove = (list: string, entry: string, query = '') =>
    app.call(`/lists/${list}/${encodeURIComponent(entry)}${query}`, { method: 'DELETE', token: own.token });
  const send = (...emails: string[]) =>
    app.call(`/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      token: own.token,
      body: { to: emails.map((email) => ({ email })), subject: 'Hello', text_body: 'Text' },
    });
  return { own, inbox, add, entries, remove, send };
}

describe('list entries', () => {
  test('are added once, listed by scope and removed', async () => {
    const { own, inbox, add, entries, remove } = await arrange();
    const first = await add('send/block', { entry: 'People.Example' });
    expect(first.statusCode).toBe(201);
    expect(first.json()).toEqual({
      object: 'list_entry',
      entry: 'people.example',
      authenticated: false,
      direction: 'send',
      effect: 'block',
      scope: 'organization',
      env_id: null,
      inbox_id: null,
      created_at: expect.any(String),
    });
    expect((await add('send/block', { entry: 'people.example' })).statusCode).toBe(200);
    const env_id = own.productionEnvironmentId;
    expect((await add('send/block', { entry: 'people.example', env_id })).json()).toMatchObject({
      scope: 'environment',
      env_id,
    });
    expect((await add('send/block', { entry: 'people.example', inbox_id: inbox.id })).json()).toMatchObject({
      scope: 'inbox',
      env_id,
      inbox_id: inbox.id,
    });
    expect(await entries('send/block')).toHaveLength(3);
    expect(await entries('send/allow')).toEqual([]);
    expect(await entries('receive/block')).toEqual([]);
    expect(await entries('send/block', `?inbox_id=${inbox.id}`)).toMatchObject([{ scope: 'inbox' }]);
    expect(await entries('send/block', `?env_id=${env_id}`)).toMatchObject([{ scope: 'environment' }]);
    expect((await remove('send/block', 'PEOPLE.example', `?inbox_id=${inbox.id}`)).statusCode).toBe(204);
    expect((await remove('send/block', 'people.example')).statusCode).toBe(204);
    expect(await entries('send/block')).toMatchObject([{ scope: 'environment' }]);
    expectProblem(await remove('send/block', 'people.example'), 'not_found');
  });

  test('are created once by 100 concurrent requests', async () => {
    const { add, entries } = await arrange();
    const responses = await Promise.all(
      Array.from({ length: 100 }, () => add('receive/block', { entry: 'spam.example' })),
    );
    expect(responses.filter(({ statusCode }) => statusCode === 201)).toHaveLength(1);
    expect(responses.filter(({ statusCode }) => statusCode === 200)).toHaveLength(99);
    expect(await entries('receive/block')).toHaveLength(1);
  });

  test.each(['', 'com', '*.people.example', '@people.example', 'ada@', 'a b.example'])(
    'reject %j, which is neither an address nor a domain',
    async (entry) => {
      const { add } = await arrange();
      expectProblem(await add('send/block', { entry }), 'validation_error');
    },
  );

  test('return 404 for unknown lists and inaccessible scopes', async () => {
    const { add, own } = await arrange();
    const otherOrganization = await createOrganization(app.worker);
    const foreign = await createInbox(app.worker, otherOrganization);
    expectProblem(await add('send/refuse', { entry: 'people.example' }), 'not_found');
    expectProblem(await add('inbox/block', { entry: 'people.example' }), 'not_found');
    for (const scope of [
      { inbox_id: foreign.id },
      { env_id: otherOrganization.productionEnvironmentId },
      { inbox_id: foreign.id, env_id: own.productionEnvironmentId },
    ])
      expectProblem(await add('send/block', { entry: 'people.example', ...scope }), 'not_found');
  });

  test('are added by a bound credential within its scope, and are visible to it if they apply there', async () => {
    const { own, inbox, add, entries } = await arrange();
    const environmentId = own.productionEnvironmentId;
    const bound = await createKey(app.worker, { ...own, environmentId, inboxId: inbox.id });
    expect((await add('send/block', { entry: 'a.example' }, bound.token)).json()).toMatchObject({
      scope: 'inbox',
      inbox_id: inbox.id,
    });
    await add('send/block', { entry: 'b.example' });
    await add('send/block', { entry: 'c.example', inbox_id: (await createInbox(app.worker, own)).id });
    await add('send/block', { entry: 'd.example', env_id: own.sandboxEnvironmentId });
    const seen = await entries('send/block', '', bound.token);
    expect(seen.map(({ entry }) => entry)).toEqual(['b.example', 'a.example']);
    const outside = { entry: 'e.example', env_id: own.sandboxEnvironmentId };
    expectProblem(await add('send/block', outside, bound.token), 'not_found');
  });
});

describe('sending', () => {
  test('is refused with an event for one blocked recipient; the draft is kept', async () => {
    const { own, inbox, add, send } = await arrange();
    await add('send/block', { entry: 'people.example' });
    const response = await send('ann@example.test', 'Ada@mail.People.example');
    expect(expectProblem(response, 'message_rejected')).toMatchObject({
      rejection_reason: 'blocked_recipient',
      detail: 'ada@mail.people.example is on a send block list (entry people.example of the organization).',
    });
    const events = await app.worker.db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('org_id', '=', own.organizationId)
      .execute();
    expect(events.map(({ type, data }) => ({ type, data }))).toEqual([
      {
        type: 'message.rejected',
        data: {
          inbox_id: inbox.id,
          from_address: inbox.email,
          to_addresses: ['ann@example.test', 'Ada@mail.People.example'],
          subject: 'Hello',
          rejection_reason: 'blocked_recipient',
          rejection_detail: expect.stringContaining('people.example'),
          rejected_at: expect.any(String),
        },
      },
    ]);
    expect((await send('ann@example.test', 'ada@otherpeople.example')).statusCode).toBe(201);
  });

  test('follows the narrowest scope; an allow entry does not block unlisted addresses', async () => {
    const { own, inbox, add, remove, send } = await arrange();
    await add('send/block', { entry: 'people.example' });
    await add('send/allow', { entry: 'ada@people.example', env_id: own.productionEnvironmentId });
    expect((await send('ada@people.example')).statusCode).toBe(201);
    expectProblem(await send('bob@people.example'), 'message_rejected');
    expect((await send('ann@elsewhere.example')).statusCode).toBe(201);
    await add('send/block', { entry: 'people.example', inbox_id: inbox.id });
    expectProblem(await send('ada@people.example'), 'message_rejected');
    await add('send/allow', { entry: 'ada@people.example', inbox_id: inbox.id });
    expectProblem(await send('ada@people.example'), 'message_rejected');
    await remove('send/block', 'people.example', `?inbox_id=${inbox.id}`);
    expect((await send('ada@people.example')).statusCode).toBe(201);
  });

  test('ignores lists of another inbox, environment or direction', async () => {
    const { own, add, send } = await arrange();
    await add('send/block', { entry: 'people.example', inbox_id: (await createInbox(app.worker, own)).id });
    await add('send/block', { entry: 'people.example', env_id: own.sandboxEnvironmentId });
    await add('receive/block', { entry: 'people.example' });
    expect((await send('ada@people.example')).statusCode).toBe(201);
  });

  test('rejects a queued message after a block entry was added', async () => {
    const world = await arrangeSending(app.worker);
    const id = await world.send('ada@people.example', 'bob@elsewhere.example');
    const { token } = await createKey(app.worker, { organizationId: world.scope.organizationId });
    await app.call('/lists/send/block', { method: 'POST', token, body: { entry: 'elsewhere.example' } });
    await expect(dispatchOnce(world, id)).resolves.toBe('finished');
    expect(world.transport.transmissions).toEqual([]);
    const state = await readMessageState(app.worker, id);
    expect(state).toMatchObject({ status: 'rejected', types: ['message.rejected'] });
    expect(state.events[0]?.data).toMatchObject({
      to_addresses: ['ada@people.example', 'bob@elsewhere.example'],
      rejection_reason: 'blocked_recipient',
    });
  });
});

describe('receiving at RCPT', () => {
  test.each([
    ['an address on a block list', 'Eve@Spam.example', 'blocked'],
    ['an address in a subdomain of a blocked domain', 'eve@mail.spam.example', 'blocked'],
    ['an address that a narrower scope allows', 'ok@spam.example', 'mail'],
    ['an address on no list', 'ada@people.example', 'mail'],
    ['the null sender', '', 'mail'],
    ['an invalid address', 'spam.example\0', 'mail'],
  ])('routes %s (%j) as %s', async (_name, sender, expected) => {
    const { inbox, add } = await arrange();
    await add('receive/block', { entry: 'spam.example' });
    await add('receive/allow', { entry: 'ok@spam.example', inbox_id: inbox.id });
    await add('send/block', { entry: 'people.example' });
    const receipts = createTestReceiptService({ database: app.worker, outbox: recordingOutbox().outbox });
    const route = await receipts.resolve(inbox.email, sender);
    expect(typeof route === 'string' ? route : route.kind).toBe(expected);
  });
});
