import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { domainOf } from '../mime/mail-address.ts';
import type { RefusalDirection, RefusalReason, RefusalStage } from './refusal.entity.ts';

/** Equal refusals since the last flush. */
export interface CountedRefusal {
  direction: RefusalDirection;
  stage: RefusalStage;
  reason: RefusalReason;
  responseCode: number;
  response: string;
  /** Determines the organization: the recipient, or the login of an email client. */
  address: string;
  /** The refused recipient; null if the refusal concerns none. */
  recipient: string | null;
  sender: string | null;
  clientIp: string;
  count: number;
  firstAt: Date;
  lastAt: Date;
}

/** Rows with addresses per organization and hour. */
export const MAX_ROWS_PER_HOUR = 200;
const HOUR_MS = 3_600_000;

interface Owner {
  email: string;
  organizationId: string;
  environmentId: string | null;
  inboxId: string | null;
}

interface NewRow extends Omit<CountedRefusal, 'address' | 'clientIp'>, Omit<Owner, 'email'> {
  id: string;
  clientIp: string | null;
  hour: Date;
  /** In hexadecimal. */
  fingerprint: string;
}

/**
 * Adds refusals to the rows of their organizations: of the inbox with the address, or of the verified domain. Refusals of
 * other addresses belong to no organization and leave no row.
 */
export async function storeRefusals(database: Database, refusals: readonly CountedRefusal[]): Promise<void> {
  if (refusals.length === 0) return;
  const stored = refusals.map((refusal) => ({ ...refusal, address: toStoredAddress(refusal.address) }));
  const owners = await findOwners(database, [...new Set(stored.map(({ address }) => baseAddress(address)))]);
  const rows = stored.flatMap((refusal) => {
    const owner = owners.get(baseAddress(refusal.address));
    return owner ? [toRow(refusal, owner)] : [];
  });
  if (rows.length === 0) return;
  await database.systemTransaction(async ({ db }) => upsert(db, await limitRows(db, rows)));
}

const toStoredAddress = (address: string): string => storableText(address.toLowerCase(), 320);

async function findOwners({ db }: Database, addresses: string[]): Promise<Map<string, Owner>> {
  const domains = addresses.map(domainOf);
  const asked = sql<{ email: string; domain: string }>`unnest(${addresses}::text[], ${domains}::text[])`;
  const found = await db
    .selectFrom(asked.as<'a'>(sql`a(email, domain)`))
    .leftJoin('address_claims as c', (join) =>
      join.onRef('c.email', '=', 'a.email').on('c.released_at', 'is', null),
    )
    .leftJoin('inboxes as i', (join) => join.onRef('i.id', '=', 'c.inbox_id').on('i.deleted_at', 'is', null))
    .leftJoin('domains as d', (join) =>
      join.onRef('d.domain_name', '=', 'a.domain').on('d.verification_status', '=', 'verified'),
    )
    .select((eb) => [
      'a.email',
      eb.fn.coalesce('i.org_id', 'd.org_id').as('organizationId'),
      'i.env_id as environmentId',
      'i.id as inboxId',
    ])
    .execute();
  return new Map(
    found.flatMap(({ organizationId, ...owner }): [string, Owner][] =>
      organizationId === null ? [] : [[owner.email, { ...owner, organizationId }]],
    ),
  );
}

function toRow(refusal: CountedRefusal, owner: Owner): NewRow {
  const { organizationId, environmentId, inboxId } = owner;
  const { direction, stage, reason, responseCode, response, clientIp, count, firstAt, lastAt } = refusal;
  const sender = refusal.sender === null ? null : toStoredAddress(refusal.sender);
  const recipient = refusal.recipient === null ? null : toStoredAddress(refusal.recipient);
  return {
    id: newId('refusal'),
    organizationId,
    environmentId,
    inboxId,
    direction,
    stage,
    reason,
    responseCode,
    response: storableText(response, 500),
    sender,
    recipient,
    clientIp: storableText(clientIp, 64),
    hour: new Date(Math.floor(lastAt.getTime() / HOUR_MS) * HOUR_MS),
    fingerprint: hash([direction, stage, reason, inboxId, sender, recipient]),
    count,
    firstAt,
    lastAt,
  };
}

const hash = (fields: (string | null)[]): string =>
  createHash('sha256').update(JSON.stringify(fields)).digest('hex');

interface StoredHour {
  /** Rows with addresses. */
  count: number;
  /** Fingerprints of new rows that exist already. */
  present: Set<string>;
}

async function findStoredHours(db: Db, rows: readonly NewRow[]): Promise<Map<string, StoredHour>> {
  const byHour = new Map(rows.map((row) => [hourOf(row), row]));
  const organizationIds = [...byHour.values()].map(({ organizationId }) => organizationId);
  const hours = [...byHour.values()].map(({ hour }) => hour);
  const fingerprints = rows.map(({ fingerprint }) => Buffer.from(fingerprint, 'hex'));
  const asked = sql<{
    org_id: string;
    hour: Date;
  }>`unnest(${organizationIds}::text[], ${hours}::timestamptz[])`;
  const known = await db
    .selectFrom(asked.as<'g'>(sql`g(org_id, hour)`))
    .select((eb) => [
      'g.org_id as organizationId',
      'g.hour',
      eb
        .selectFrom('refusals as r')
        .select((count) => count.fn.countAll<number>().as('count'))
        .whereRef('r.org_id', '=', 'g.org_id')
        .whereRef('r.hour', '=', 'g.hour')
        .where('r.client_ip', 'is not', null)
        .as('count'),
      eb
        .selectFrom('refusals as r')
        .select(sql<string[] | null>`array_agg(encode(r.fingerprint, 'hex'))`.as('present'))
        .whereRef('r.org_id', '=', 'g.org_id')
        .whereRef('r.hour', '=', 'g.hour')
        .where('r.fingerprint', '=', anyOf(fingerprints))
        .as('present'),
    ])
    .execute();
  return new Map(
    known.map(({ count, present, ...group }) => [
      hourOf(group),
      { count: count ?? 0, present: new Set(present) },
    ]),
  );
}

const hourOf = ({ organizationId, hour }: Pick<NewRow, 'organizationId' | 'hour'>): string =>
  `${organizationId} ${hour.toISOString()}`;

/** Replaces the rows that exceed the limit of their organization and hour with one row for each reason. */
async function limitRows(db: Db, rows: NewRow[]): Promise<NewRow[]> {
  const hours = await findStoredHours(db, rows);
  const kept = new Map<string, NewRow>();
  for (const row of rows) {
    const taken = hours.get(hourOf(row));
    const isNew = taken && !taken.present.has(row.fingerprint);
    const limited = isNew && taken.count >= MAX_ROWS_PER_HOUR ? withoutAddresses(row) : row;
    if (isNew && limited === row) {
      taken.count += 1;
      taken.present.add(row.fingerprint);
    }
    addRow(kept, limited);
  }
  // In a fixed order, so that two processes cannot wait for each other.
  return [...kept.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function withoutAddresses(row: NewRow): NewRow {
  const anonymous = { environmentId: null, inboxId: null, sender: null, recipient: null, clientIp: null };
  return { ...row, ...anonymous, fingerprint: hash([row.direction, row.stage, row.reason]) };
}

const keyOf = (row: NewRow): string => `${hourOf(row)} ${row.fingerprint}`;

/** Adds up equal rows, because one statement cannot change a row twice. */
function addRow(rows: Map<string, NewRow>, row: NewRow): void {
  const same = rows.get(keyOf(row));
  if (!same) rows.set(keyOf(row), row);
  else {
    same.count += row.count;
    if (row.firstAt < same.firstAt) same.firstAt = row.firstAt;
    if (row.lastAt > same.lastAt) same.lastAt = row.lastAt;
  }
}

async function upsert(db: Db, rows: readonly NewRow[]): Promise<void> {
  await db
    .insertInto('refusals')
    .values(
      rows.map(({ fingerprint, ...row }) => ({
        id: row.id,
        org_id: row.organizationId,
        env_id: row.environmentId,
        inbox_id: row.inboxId,
        direction: row.direction,
        stage: row.stage,
        reason: row.reason,
        response_code: row.responseCode,
        response: row.response,
        sender: row.sender,
        recipient: row.recipient,
        client_ip: row.clientIp,
        count: row.count,
        hour: row.hour,
        fingerprint: Buffer.from(fingerprint, 'hex'),
        first_at: row.firstAt,
        last_at: row.lastAt,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['org_id', 'hour', 'fingerprint']).doUpdateSet((eb) => ({
        count: eb('refusals.count', '+', eb.ref('excluded.count')),
        last_at: eb.fn('greatest', ['refusals.last_at', 'excluded.last_at']),
        client_ip: eb.ref('excluded.client_ip'),
      })),
    )
    .execute();
}
