import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { InboxEntity } from '../../domain/inboxes/inbox.entity.ts';
import { pauseForReputation } from '../../domain/inboxes/inbox-status.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createAccountQuickly, type QuickAccount } from '../support/accounts.ts';
import { impersonate } from '../support/impersonation.ts';
import { createKey } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
const REASON = 'The agent answers its own newsletter';
let person: QuickAccount;
let inboxId: string;
/** Of an agent, with its default permissions. */
let agent: string;
/** Of a program that may also resume. */
let manager: string;

beforeEach(async () => {
  person = await createAccountQuickly(app);
  const { organizationId } = person;
  inboxId = await addInbox();
  agent = (await createKey(app.worker, { organizationId, permissions: ['inboxes:read', 'inboxes:write'] }))
    .token;
  manager = (await createKey(app.worker, { organizationId })).token;
});

const addInbox = async (): Promise<string> =>
  (await app.call('/inboxes', { method: 'POST', token: person.token, body: {} })).json().id;
const pause = (token: string, reason: unknown = REASON, headers = {}) =>
  app.call(`/inboxes/${inboxId}/pause`, { method: 'POST', token, body: { reason }, headers });
const resume = (token: string) => app.call(`/inboxes/${inboxId}/resume`, { method: 'POST', token });
const send = (token: string) =>
  app.call(`/inboxes/${inboxId}/messages`, {
    method: 'POST',
    token,
    body: { to: [{ email: 'ada@people.example' }], subject: 'Hello' },
  });
const readInbox = () =>
  app.worker.db
    .selectFrom('inboxes')
    .select(columnsOf(InboxEntity))
    .where('id', '=', inboxId)
    .executeTakeFirstOrThrow();
const readAudit = () =>
  query<{ action: string; reason: string | null; actor_kind: string }>(
    app.worker,
    sql`select action, reason, actor_kind from audit_entries
      where resource_id = ${inboxId} and action <> 'inbox.created' order by id`,
  );
const pauseByService = () => pauseForReputation(app.worker.db, inboxId, 'too many bounces');

describe('a pause', () => {
  test('by an agent’s key refuses sends with its reason, and says who paused the inbox since when', async () => {
    const paused = await pause(agent);
    expect(paused.statusCode).toBe(200);
    expect(paused.json()).toMatchObject({
      send_paused: true,
      send_paused_reason: REASON,
      send_paused_by: 'credential',
      send_paused_at: expect.any(String),
    });
    expect(expectProblem(await send(manager), 'message_rejected')).toMatchObject({
      rejection_reason: 'account_paused',
      detail: `Sending from this inbox is paused: ${REASON}.`,
      fix: expect.stringContaining('Fix the cause'),
    });
    expect(await readAudit()).toMatchObject([
      { action: 'inbox.sending_paused', reason: REASON, actor_kind: 'api_key' },
    ]);
  });

  test('needs inboxes:write', async () => {
    const { organizationId } = person;
    const reader = await createKey(app.worker, { organizationId, permissions: ['inboxes:read'] });
    expectProblem(await pause(reader.token), 'permission_denied');
    expect(await readInbox()).toMatchObject({ sendPaused: false });
  });

  test.each([undefined, '', ' \u00a0 ', 'two\nlines', 'x'.repeat(501), 7])(
    'refuses the reason %p',
    async (reason) => {
      expectProblem(await pause(agent, reason === undefined ? null : reason), 'validation_error');
      expect(await readInbox()).toMatchObject({ sendPaused: false });
    },
  );

  test('takes a reason of 500 characters, with text of any script', async () => {
    const reason = `‏توقف 🛑 ${'x'.repeat(490)}`;
    expect((await pause(agent, reason)).json()).toMatchObject({ send_paused_reason: reason });
  });

  test('of a key that is bound to another inbox finds nothing', async () => {
    const { organizationId } = person;
    const bound = await createKey(app.worker, { organizationId, inboxId: await addInbox() });
    expectProblem(await pause(bound.token), 'not_found');
    expect(await readInbox()).toMatchObject({ sendPaused: false });
  });

  test('that is repeated with its Idempotency-Key answers the same and is recorded once', async () => {
    const headers = { 'idempotency-key': 'stop-1' };
    const first = await pause(agent, REASON, headers);
    expect((await pause(agent, REASON, headers)).json()).toEqual(first.json());
    expect(await readAudit()).toHaveLength(1);
  });
});

describe('a pause of a paused inbox', () => {
  test('by a key changes nothing', async () => {
    const first = (await pause(agent)).json();
    expect((await pause(manager, 'another reason')).json()).toEqual(first);
    expect(await readAudit()).toHaveLength(1);
    expect((await pause(person.token, 'A person decides')).json()).toMatchObject({
      send_paused_by: 'person',
      send_paused_reason: 'A person decides',
    });
    expect((await pause(manager, 'mine again')).json()).toMatchObject({ send_paused_by: 'person' });
    expect((await pause(person.token, 'A person decides')).statusCode).toBe(200);
    expect(await readAudit()).toHaveLength(2);
  });

  test('at the same time by a person and a key ends as the person’s', async () => {
    await Promise.all([pause(manager, 'key'), pause(person.token, 'person'), pause(manager, 'key 2')]);
    expect(await readInbox()).toMatchObject({ sendPausedReason: 'person', sendPausedByKind: 'user' });
  });

  test('by the service keeps the reason, and remembers that the limits were exceeded', async () => {
    await pause(person.token);
    await pauseByService();
    expect(await readInbox()).toMatchObject({
      sendPausedReason: REASON,
      sendPausedByKind: 'user',
      reputationPaused: true,
      sendResumedAt: null,
    });
    await resume(person.token);
    expect(await readInbox()).toMatchObject({ reputationPaused: false, sendResumedAt: expect.any(Date) });
  });

  test('by a person after the service’s does not forget that the limits were exceeded', async () => {
    await pauseByService();
    expect((await pause(person.token)).json()).toMatchObject({
      send_paused_by: 'person',
      send_paused_reason: REASON,
    });
    expect(await readInbox()).toMatchObject({ reputationPaused: true });
  });
});

describe('a resumption', () => {
  test('of an inbox that a person paused needs a person', async () => {
    await pause(person.token);
    const refused = await send(manager);
    expect(expectProblem(refused, 'message_rejected')).toMatchObject({
      fix: expect.stringContaining('a person resumes it'),
    });
    expect(expectProblem(await resume(manager), 'permission_denied')).toMatchObject({
      detail: 'A person paused sending from this inbox, so only a person resumes it.',
    });
    expect(await readInbox()).toMatchObject({ sendPaused: true });
    const resumed = await resume(person.token);
    expect(resumed.json()).toMatchObject({
      send_paused: false,
      send_paused_reason: null,
      send_paused_by: null,
      send_paused_at: null,
    });
    expect((await send(manager)).statusCode).toBe(201);
    expect((await readAudit()).map(({ action }) => action)).toEqual([
      'inbox.sending_paused',
      'inbox.sending_resumed',
    ]);
  });

  test('of an inbox that a key paused is open to keys with inboxes:manage, and keeps the count of bounces', async () => {
    await pause(agent);
    expectProblem(await resume(agent), 'permission_denied');
    expect((await resume(manager)).json()).toMatchObject({ send_paused: false });
    expect(await readInbox()).toMatchObject({ sendResumedAt: null });
  });

  test('of an inbox that staff paused needs a person, too', async () => {
    const support = await impersonate(app, person.organizationId, { write: true });
    expect((await pause(support.token)).json()).toMatchObject({ send_paused_by: 'staff' });
    expectProblem(await resume(manager), 'permission_denied');
    expect((await resume(person.token)).statusCode).toBe(200);
  });

  test('by a viewer or developer is refused', async () => {
    await pause(person.token);
    await query(
      app.worker,
      sql`update members set role = 'developer' where user_id = ${person.userId} returning user_id`,
    );
    expectProblem(await resume(person.token), 'permission_denied');
  });
});
