import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { deleteExpiredRefusals } from '../../domain/refusals/delete-refusals.ts';
import { REFUSAL_REASONS } from '../../domain/refusals/refusal.entity.ts';
import { createRefusalRecorder, type NewRefusal } from '../../domain/refusals/refusal-recorder.ts';
import { MAX_ROWS_PER_HOUR } from '../../domain/refusals/store-refusals.ts';
import { newId } from '../../platform/ids.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useTestApp, useWorkerDatabase } from '../support/resources.ts';

const app = useTestApp();
const database = useWorkerDatabase();

type Json = Record<string, unknown>;
const HOUR = new Date('2026-11-22T12:30:00.000Z');

const recorder = (now: () => Date = () => HOUR) => {
  const errors: unknown[] = [];
  const created = createRefusalRecorder({
    database,
    onError: (error) => errors.push(error),
    flushIntervalMs: 3_600_000,
    now,
  });
  return { ...created, errors };
};

const unknown = (address: string, sender = 'ada@people.example'): NewRefusal => ({
  direction: 'inbound',
  stage: 'rcpt',
  reason: 'unknown_mailbox',
  responseCode: 550,
  response: '5.1.1 No such mailbox here',
  address,
  recipient: address,
  sender,
  clientIp: '192.0.2.7',
});
const blocked = (address: string, sender?: string): NewRefusal => ({
  ...unknown(address, sender),
  reason: 'sender_blocked',
  response: '5.7.1 The recipient does not accept mail from this sender',
});

const listed = async (token: string, query = '', headers: Record<string, string> = {}) => {
  const response = await app.call(`/refusals${query}`, { token, headers });
  expect(response.statusCode).toBe(200);
  return response.json<{ data: Json[] }>().data;
};

async function arrange() {
  const organization = await createOrganization(database);
  const inbox = await createInbox(database, organization);
  const domain = `${organization.organizationId.replace('_', '-')}.example`;
  await query(
    database,
    sql`insert into domains (id, org_id, domain_name, ownership_token, verification_status, observed, generation_started_at, created_at, updated_at)
      values (${newId('domain')}, ${organization.organizationId}, ${domain}, 'x', 'verified', '{}', now(), now(), now())`,
  );
  return { organization, inbox, domain };
}

describe('refused mail', () => {
  test('shows to the organization of the inbox, with the reason and the reply', async () => {
    const { organization, inbox } = await arrange();
    const refusals = recorder();
    refusals.record(blocked(inbox.email.toUpperCase(), 'Spam@Bad.Example'));
    await refusals.close();
    expect(await listed(organization.token, `?inbox_id=${inbox.id}&reason=sender_blocked`)).toEqual([
      {
        object: 'refusal',
        id: expect.stringMatching(/^ref_/),
        direction: 'inbound',
        stage: 'rcpt',
        reason: 'sender_blocked',
        response_code: 550,
        response: '5.7.1 The recipient does not accept mail from this sender',
        from_address: 'spam@bad.example',
        to: inbox.email,
        client_ip: '192.0.2.7',
        inbox_id: inbox.id,
        env_id: inbox.environmentId,
        count: 1,
        first_at: HOUR.toISOString(),
        last_at: HOUR.toISOString(),
      },
    ]);
    expect(await listed((await createOrganization(database)).token)).toEqual([]);
  });

  test('reaches the inbox of a tagged address, and the owner of a verified domain if there is no inbox', async () => {
    const { organization, inbox, domain } = await arrange();
    const [local, host] = inbox.email.split('@');
    const refusals = recorder();
    refusals.record(blocked(`${local}+tag@${host}`));
    refusals.record(unknown(`typo@${domain}`));
    await refusals.close();
    const all = await listed(organization.token);
    expect(all.map(({ to, inbox_id }) => ({ to, inbox_id }))).toEqual(
      expect.arrayContaining([
        { to: `${local}+tag@${host}`, inbox_id: inbox.id },
        { to: `typo@${domain}`, inbox_id: null },
      ]),
    );
    expect(await listed(organization.token, `?to=TYPO@${domain}`)).toHaveLength(1);
    expect(await listed(organization.token, '?from=eve@people.example')).toEqual([]);
  });

  test('leaves no row for an address of no organization', async () => {
    const before = await query<{ count: number }>(database, sql`select count(*)::int as count from refusals`);
    const refusals = recorder();
    refusals.record(unknown('nobody@agents.test'));
    refusals.record(unknown('no address'));
    await refusals.close();
    expect(refusals.errors).toEqual([]);
    expect(await query(database, sql`select count(*)::int as count from refusals`)).toEqual(before);
  });

  test('is hidden from credentials bound elsewhere, and of unknown addresses from bound ones', async () => {
    const { organization, inbox, domain } = await arrange();
    const other = await createInbox(database, organization);
    const { organizationId } = organization;
    const [own, foreign] = await Promise.all(
      [inbox, other].map(({ id, environmentId }) =>
        createKey(database, { organizationId, environmentId, inboxId: id }),
      ),
    );
    const refusals = recorder();
    refusals.record(blocked(inbox.email));
    refusals.record(unknown(`typo@${domain}`));
    await refusals.close();
    expect(await listed(organization.token)).toHaveLength(2);
    expect(await listed(own?.token ?? '')).toHaveLength(1);
    expect(await listed(foreign?.token ?? '')).toEqual([]);
  });
});

describe('a flood', () => {
  test('of equal refusals is one row an hour with a count', async () => {
    const { organization, inbox } = await arrange();
    let now = HOUR;
    const refusals = recorder(() => now);
    for (let index = 0; index < 1_000; index += 1) refusals.record(blocked(inbox.email));
    await refusals.flush();
    now = new Date(HOUR.getTime() + 60_000);
    refusals.record(blocked(inbox.email));
    await refusals.flush();
    expect(await listed(organization.token)).toMatchObject([
      { count: 1_001, first_at: HOUR.toISOString(), last_at: now.toISOString() },
    ]);
    now = new Date(HOUR.getTime() + 3_600_000);
    refusals.record(blocked(inbox.email));
    await refusals.close();
    expect(await listed(organization.token)).toHaveLength(2);
  });

  test('of different refusals is limited, and the rest is counted without addresses', async () => {
    const { organization, inbox, domain } = await arrange();
    const refusals = recorder();
    refusals.record(blocked(inbox.email));
    const total = MAX_ROWS_PER_HOUR + 300;
    for (let index = 0; index < total; index += 1) refusals.record(unknown(`typo${index}@${domain}`));
    await refusals.flush();
    // Known ones are still counted in their own row.
    refusals.record(blocked(inbox.email));
    refusals.record(unknown(`last@${domain}`));
    await refusals.close();
    expect(refusals.errors).toEqual([]);
    const rows = await query<{ recipient: string | null; count: number }>(
      database,
      sql`select recipient, count from refusals where org_id = ${organization.organizationId}`,
    );
    expect(rows).toHaveLength(MAX_ROWS_PER_HOUR + 1);
    expect(rows.find(({ recipient }) => recipient === inbox.email)?.count).toBe(2);
    expect(rows.find(({ recipient }) => recipient === null)?.count).toBe(300 + 1 + 1);
    expect(await listed(organization.token, '?reason=unknown_mailbox&limit=1')).toMatchObject([
      { to: null, from_address: null, client_ip: null },
    ]);
  });
});

test('refusals wait in memory while the database is away', async () => {
  const { organization, inbox } = await arrange();
  let isAway = true;
  const errors: unknown[] = [];
  const refusals = createRefusalRecorder({
    database: {
      ...database,
      systemTransaction: (work) =>
        isAway ? Promise.reject(new Error('away')) : database.systemTransaction(work),
    },
    onError: (error) => errors.push(error),
    flushIntervalMs: 3_600_000,
  });
  refusals.record(blocked(inbox.email));
  await refusals.flush();
  expect(errors).toHaveLength(1);
  isAway = false;
  refusals.record(blocked(inbox.email));
  await refusals.close();
  expect(await listed(organization.token)).toMatchObject([{ count: 2 }]);
});

test('refusals are deleted after 30 days', async () => {
  const { organization, inbox } = await arrange();
  const refusals = recorder(() => new Date(Date.now() - 31 * 86_400_000));
  refusals.record(blocked(inbox.email));
  await refusals.close();
  expect(await listed(organization.token)).toHaveLength(1);
  await deleteExpiredRefusals(database);
  expect(await listed(organization.token)).toEqual([]);
});

test('docs/messages.md explains every reason', () => {
  const page = readFileSync(resolve(import.meta.dirname, '../../docs/messages.md'), 'utf8');
  const section = page.slice(page.indexOf('## Refused mail'), page.indexOf('## Threads'));
  for (const reason of REFUSAL_REASONS) expect(section).toContain(`\`${reason}\``);
});
