import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createAccountPurge } from '../../domain/deletions/account-purge.ts';
import { createDeletionPurgeService } from '../../domain/deletions/deletion-purge.service.ts';
import { overdueDeletions } from '../../domain/deletions/overdue-deletions.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createPersonNotificationService } from '../../domain/notifications/person-notification.service.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { newId } from '../../platform/ids.ts';
import { readAccountMail } from '../support/account-mail.ts';
import {
  createAccount,
  createAccountQuickly,
  newNetwork,
  PASSWORD,
  type QuickAccount,
  signIn,
} from '../support/accounts.ts';
import { eventually } from '../support/eventually.ts';
import { createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { usePostgres, useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
const owner = usePostgres('ownerUrl');

const deletedKeys: string[] = [];

const services = () => {
  const { outbox, commands } = recordingOutbox();
  const purges = createDeletionPurgeService({
    database: app.worker,
    notifications: createNotificationService({ outbox }),
    personNotifications: createPersonNotificationService({
      outbox,
      secretBox: createSecretBox(app.config.ENCRYPTION_KEY),
    }),
  });
  return {
    purges,
    commands,
    accounts: createAccountPurge({
      database: app.worker,
      outbox,
      storage: { deleteMany: async (keys) => void deletedKeys.push(...keys) },
    }),
  };
};

async function deleteAccount({ token, userId }: Pick<QuickAccount, 'token' | 'userId'>): Promise<string> {
  const body = { current_password: PASSWORD };
  const deleted = await app.call('/user/me', { method: 'DELETE', token, body, headers: newNetwork() });
  expect(deleted.statusCode).toBe(202);
  const [deletion] = await query<{ id: string }>(
    app.worker,
    sql`select id from deletions where subject_id = ${userId} and status = 'waiting'`,
  );
  return deletion?.id ?? '';
}

const makeDue = (deletionId: string) =>
  query(
    app.worker,
    sql`update deletions set due_at = date_trunc('milliseconds', now()) where id = ${deletionId}`,
  );
const recover = (token: string) =>
  app.call('/user/me/recover', { method: 'POST', body: { token }, headers: newNetwork() });
const statusOf = async (deletionId: string) =>
  (await query<{ status: string }>(app.worker, sql`select status from deletions where id = ${deletionId}`))[0]
    ?.status;

/** Tables and columns in which the text appears. */
async function findText(text: string): Promise<string[]> {
  const { rows: columns } = await owner.query<{ name: string; column: string }>(`
    select c.relname as name, a.attname as column from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') order by 1, 2`);
  const found: string[] = [];
  for (const { name, column } of columns) {
    const { rows } = await owner.query(
      `select from "${name}" where strpos("${column}"::text, $1) > 0 limit 1`,
      [text],
    );
    if (rows.length > 0) found.push(`${name}.${column}`);
  }
  return found;
}

test('the purge of an account leaves only the id of the person, where organizations and the deletion need it', async () => {
  const account = await createAccount(app);
  const team = await createOrganization(app.worker);
  await query(
    app.worker,
    sql`insert into members (org_id, user_id, role, created_at)
    values (${team.organizationId}, ${account.userId}, 'admin', now())`,
  );
  const headers = { ...newNetwork(), 'x-org-id': team.organizationId };
  const key = await app.call('/api-keys', {
    method: 'POST',
    token: account.token,
    headers,
    body: { name: 'Robot' },
  });
  expect(key.statusCode).toBe(201);
  await query(
    app.worker,
    sql`insert into invitations (id, org_id, email, role, token_hash, expires_at, accepted_at, accepted_by_user_id, created_at)
    values (${newId('invitation')}, ${team.organizationId}, ${account.email}, 'admin', ${Buffer.from(account.userId)}, now(),
      now(), ${account.userId}, now())`,
  );
  const name = `Name of ${account.userId}`.slice(0, 40);
  await query(app.worker, sql`update users set name = ${name} where id = ${account.userId}`);
  const deletionId = await deleteAccount(account);
  const { purges, accounts } = services();
  await makeDue(deletionId);
  expect(await purges.begin(deletionId)).toBe('purging');
  expect(await accounts.purge(deletionId)).toContain('deleted the account');

  expect(await findText(account.email)).toEqual([]);
  expect(await findText(name)).toEqual([]);
  // The bucket of a rate limit goes within minutes.
  const findColumns = async () =>
    (await findText(account.userId)).filter((column) => column !== 'rate_buckets.id');
  // Calls are recorded up to a second later.
  await eventually(async () => expect(await findColumns()).toContain('api_requests.credential_id'));
  expect(await findColumns()).toEqual([
    'api_keys.created_by_user_id',
    // In the organization's list of calls, for seven days.
    'api_requests.credential_id',
    'audit_entries.actor_id',
    'audit_entries.resource_id',
    'deletions.deleted_by',
    'deletions.subject_id',
  ]);
  const { rows } = await owner.query(
    `select count(*)::int as count from audit_entries where actor_id = $1 and ip is not null`,
    [account.userId],
  );
  expect(rows).toEqual([{ count: 0 }]);
  // What they left to the organization keeps working.
  expect((await app.call('/org', { token: key.json().token })).statusCode).toBe(200);
  const { token } = await createTestSession(app.worker, team.ownerId);
  const log = await app.call(`/org/audit-log?actor_id=${account.userId}`, { token });
  expect(log.json().data[0]).toMatchObject({ actor: { id: account.userId, name: null } });

  expect(await statusOf(deletionId)).toBe('purged');
  expect(await accounts.purge(deletionId)).toBe('purged before');
  expectProblem(await signIn(app, account.email), 'invalid_credentials');
  // The address is free again.
  const signedUp = await app.call('/auth/signup', {
    method: 'POST',
    headers: newNetwork(),
    body: { email: account.email, password: PASSWORD, name: 'Ada', organization_name: 'Engines' },
  });
  expect(signedUp.statusCode).toBe(202);
  expect((await readAccountMail(app, account.email)).map(({ template }) => template)).toEqual([
    'verify-email',
  ]);
});

test('the purge of an account ends the archives of its organizations, and their objects go first', async () => {
  const account = await createAccount(app);
  const [team, stranger] = [await createOrganization(app.worker), await createOrganization(app.worker)];
  await query(
    app.worker,
    sql`insert into members (org_id, user_id, role, created_at)
    values (${team.organizationId}, ${account.userId}, 'viewer', now()) returning org_id`,
  );
  const archives = [team, stranger].map(({ organizationId }) => ({ id: newId('export'), organizationId }));
  for (const { id, organizationId } of archives) {
    await query(
      app.worker,
      sql`insert into exports (id, org_id, requested_by, storage_key, status, expires_at, created_at, updated_at)
      values (${id}, ${organizationId}, 'key_a', ${`exports/${id}.zip`}, 'ready', now() + interval '1 day', now(), now())
      returning id`,
    );
    await query(
      app.worker,
      sql`insert into unclaimed_objects (storage_key, org_id, due_at)
      values (${`exports/${id}.zip`}, ${organizationId}, now() + interval '2 days') returning storage_key`,
    );
  }
  const deletionId = await deleteAccount(account);
  const { purges, accounts } = services();
  await makeDue(deletionId);
  await purges.begin(deletionId);
  await accounts.purge(deletionId);
  const [own, other] = archives.map(({ id }) => `exports/${id}.zip`);
  expect(deletedKeys).toContain(own);
  expect(deletedKeys).not.toContain(other);
  const rows = await query<{ id: string; status: string }>(
    app.worker,
    sql`select id, status from exports where id = any(${archives.map(({ id }) => id)})`,
  );
  expect(new Map(rows.map(({ id, status }) => [id, status]))).toEqual(
    new Map([
      [archives[0]?.id, 'expired'],
      [archives[1]?.id, 'ready'],
    ]),
  );
});

test('of a recovery and the beginning of the purge at the same time one wins', async () => {
  const outcomes = new Set<string>();
  for (let round = 0; round < 6; round += 1) {
    const account = await createAccountQuickly(app);
    const deletionId = await deleteAccount(account);
    const token = (await readAccountMail(app, account.email)).at(-1)?.token ?? '';
    // Both are allowed for an operator's stopped deletion that is resumed when it is due: the row decides.
    await query(
      app.worker,
      sql`update deletions set due_at = now() + interval '20 milliseconds' where id = ${deletionId}`,
    );
    const { purges, accounts } = services();
    const [recovered, begun] = await Promise.all([
      recover(token),
      (async () => {
        for (;;) {
          const state = await purges.begin(deletionId);
          if (state !== 'not_due') return state;
        }
      })(),
    ]);
    if (recovered.statusCode === 200) {
      expect(begun).toBe('recovered');
      await expect(accounts.purge(deletionId)).rejects.toMatchObject({ code: 'conflict' });
    } else {
      expectProblem(recovered, 'invalid_credentials');
      expect(begun).toBe('purging');
    }
    outcomes.add(begun);
    expect(['recovered', 'purging']).toContain(await statusOf(deletionId));
  }
  expect(outcomes.size).toBeGreaterThan(0);
});

test('once a purge has begun, nothing is recovered, also if an operator stops it', async () => {
  const account = await createAccountQuickly(app);
  const deletionId = await deleteAccount(account);
  const token = (await readAccountMail(app, account.email)).at(-1)?.token ?? '';
  await makeDue(deletionId);
  const { purges } = services();
  expect(await purges.begin(deletionId)).toBe('purging');
  expectProblem(await recover(token), 'invalid_credentials');
  expect(await purges.stop(deletionId)).toBe('stopped');
  expectProblem(await recover(token), 'invalid_credentials');
});

test('a purge that an operator stopped before it began stays recoverable', async () => {
  const account = await createAccountQuickly(app);
  const deletionId = await deleteAccount(account);
  const token = (await readAccountMail(app, account.email)).at(-1)?.token ?? '';
  const { purges } = services();
  expect(await purges.stop(deletionId)).toBe('stopped');
  await makeDue(deletionId);
  expect(await purges.begin(deletionId)).toBe('stopped');
  expect((await recover(token)).statusCode).toBe(200);
  expect(await purges.stop(deletionId)).toBe('recovered');
});

test('reminders carry a token, go out once, and only while the account can be recovered', async () => {
  const account = await createAccountQuickly(app);
  const deletionId = await deleteAccount(account);
  const { purges, commands } = services();
  await Promise.all([purges.remind(deletionId, 7), purges.remind(deletionId, 7)]);
  await purges.remind(deletionId, 1);
  const reminders = (await readAccountMail(app, account.email)).filter(
    ({ template }) => template === 'account-deletion-reminder',
  );
  expect(reminders).toHaveLength(2);
  expect(commands).toHaveLength(2);
  expect((await recover(reminders[0]?.token ?? '')).statusCode).toBe(200);
  expect(await purges.remind(deletionId, 1)).toBe(0);
});

test('owners of a closed organization are reminded, unless it was closed with an account', async () => {
  const { organizationId, ownerId } = await createOrganization(app.worker);
  const session = await createTestSession(app.worker, ownerId);
  const closed = await app.call('/org', { method: 'DELETE', token: session.token, body: { name: 'Test' } });
  expect(closed.statusCode).toBe(202);
  const [own] = await query<{ id: string }>(
    app.worker,
    sql`select id from deletions where subject_id = ${organizationId}`,
  );
  const { purges, commands } = services();
  expect(await purges.remind(own?.id ?? '', 7)).toBe(1);
  expect(commands).toHaveLength(1);
  const account = await createAccountQuickly(app);
  await deleteAccount(account);
  const [withAccount] = await query<{ id: string }>(
    app.worker,
    sql`select id from deletions where deleted_by = ${account.userId} and kind = 'organization'`,
  );
  expect(await purges.remind(withAccount?.id ?? '', 7)).toBe(0);
});

test('the reconciler starts a missing run again, and records in the row that an operator stopped one', async () => {
  const account = await createAccountQuickly(app);
  const deletionId = await deleteAccount(account);
  const { purges } = services();
  const take = async () =>
    (await overdueDeletions(app.worker, purges).take(10_000)).find(({ start }) =>
      start.workflowId.includes(deletionId),
    );
  // The process that committed it starts the run.
  expect(await take()).toBeUndefined();
  await query(
    app.worker,
    sql`update deletions set deleted_at = deleted_at - interval '3 minutes' where id = ${deletionId}`,
  );
  const run = await take();
  expect(run?.start).toMatchObject({
    workflowId: `purge/${account.userId}/${deletionId}`,
    input: { deletionId, dueAt: expect.stringMatching(/Z$/) },
  });
  // Once an hour.
  expect(await take()).toBeUndefined();
  if (typeof run?.whenStopped === 'function') await run.whenStopped();
  expect(await statusOf(deletionId)).toBe('stopped');
  // Resumed as docs/runbook/stuck-work.md says.
  await query(
    app.worker,
    sql`update deletions set status = case when purge_started_at is null then 'waiting' else 'purging' end, ended_at = null,
      reconciled_at = null, generation = generation + 1 where id = ${deletionId} and status = 'stopped'`,
  );
  expect((await take())?.start.workflowId).toBe(`purge/${account.userId}/${deletionId}/2`);
});

test('every column with the id of a user goes with the account, or is known to keep it', async () => {
  const { rows } = await owner.query<{ name: string }>(`
    select c.relname || '.' || a.attname as name from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attname ~ '(^|_)user_id$'
      and not exists (select from pg_constraint f where f.conrelid = c.oid and f.contype = 'f' and f.confdeltype = 'c'
        and a.attnum = any(f.conkey))`);
  expect(rows.map(({ name }) => name).sort()).toEqual([
    // Keys stay with the organization.
    'api_keys.created_by_user_id',
    // The organization’s record of who invited; invitations that the person accepted are deleted.
    'invitations.accepted_by_user_id',
    'invitations.invited_by_user_id',
    // Deleted by name.
    'notifications.user_id',
    // The link ends with the membership of its creator, and is deleted a week later.
    'sso_setup_links.created_by_user_id',
    // Of sign-ins that last ten minutes.
    'sso_transactions.user_id',
  ]);
});
