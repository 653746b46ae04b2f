import { createHash } from 'node:crypto';
import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import { newId } from '../../platform/ids.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import type { RefusalDirection, RefusalReason, RefusalStage } from './refusal.entity.ts';

/** Equal refusals since the last flush. */
export interface CountedRefusal {
  direction: RefusalDirection;
  stage: RefusalStage;
  reason: RefusalReason;
  responseCode: number;
  response: string;
  /** Decides whose refusal it is: the recipient, or the login of an email client. */
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

interface NewRow
  extends Omit<CountedRefusal, 'address' | 'clientIp' | 'firstAt' | 'lastAt'>,
    Omit<Owner, 'email'> {
  id: string;
  clientIp: string | null;
  hour: string;
  fingerprint: string;
  firstAt: string;
  lastAt: string;
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
  await database.systemTransaction(async ({ em }) => upsert(em, await limitRows(em, rows)));
}

const toStoredAddress = (address: string): string => storableText(address.toLowerCase(), 320);

async function findOwners(database: Database, addresses: string[]): Promise<Map<string, Owner>> {
  const found = await database.query<Owner>(
    sql`select a.email, coalesce(i.org_id, d.org_id) as "organizationId", i.env_id as "environmentId", i.id as "inboxId"
      from jsonb_to_recordset(${JSON.stringify(
        addresses.map((email) => ({ email, domain: email.slice(email.lastIndexOf('@') + 1) })),
      )}::jsonb) as a (email text, domain text)
      left join inboxes i on i.email = a.email and i.deleted_at is null
      left join domains d on d.domain_name = a.domain and d.verification_status = 'verified'
      where coalesce(i.org_id, d.org_id) is not null`,
  );
  return new Map(found.map((owner) => [owner.email, owner]));
}

function toRow(refusal: CountedRefusal, owner: Owner): NewRow {
  const { organizationId, environmentId, inboxId } = owner;
  const { direction, stage, reason, responseCode, response, clientIp, count, firstAt, lastAt } = refusal;
  const sender = refusal.sender === null ? null : toStoredAddress(refusal.sender);
  const recipient = refusal.recipient === null ? null : toStoredAddress(refusal.recipient);
  return {
    id: newId('refusal'),
    ...{ organizationId, environmentId, inboxId, direction, stage, reason, responseCode, sender, count },
    response: storableText(response, 500),
    recipient,
    clientIp: storableText(clientIp, 64),
    hour: new Date(Math.floor(lastAt.getTime() / HOUR_MS) * HOUR_MS).toISOString(),
    fingerprint: hash([direction, stage, reason, inboxId, sender, recipient]),
    firstAt: firstAt.toISOString(),
    lastAt: lastAt.toISOString(),
  };
}

const hash = (fields: (string | null)[]): string =>
  createHash('sha256').update(JSON.stringify(fields)).digest('hex');

/** Replaces the rows beyond the limit of their organization and hour by one for each reason. */
async function limitRows(em: EntityManager, rows: NewRow[]): Promise<NewRow[]> {
  const keys = rows.map(({ organizationId, hour, fingerprint }) => ({ organizationId, hour, fingerprint }));
  const known = await em.execute<
    { organizationId: string; hour: string; count: number; present: string[] }[]
  >(
    sql`with asked as (
        select distinct "organizationId" as org_id, hour, fingerprint
        from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as k ("organizationId" text, hour timestamptz, fingerprint text))
      select g.org_id as "organizationId", to_char(g.hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as hour,
        (select count(*)::int from refusals r where r.org_id = g.org_id and r.hour = g.hour and r.client_ip is not null) as count,
        (select coalesce(jsonb_agg(asked.fingerprint), '[]') from asked join refusals r
           on r.org_id = asked.org_id and r.hour = asked.hour and r.fingerprint = decode(asked.fingerprint, 'hex')
         where asked.org_id = g.org_id and asked.hour = g.hour) as present
      from (select distinct org_id, hour from asked) g`,
  );
  const hours = new Map(
    known.map(({ organizationId, hour, count, present }) => [
      `${organizationId} ${hour}`,
      { count, present: new Set(present) },
    ]),
  );
  const kept = new Map<string, NewRow>();
  for (const row of rows) {
    const taken = hours.get(`${row.organizationId} ${row.hour}`);
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

const keyOf = ({ organizationId, hour, fingerprint }: NewRow): string =>
  `${organizationId} ${hour} ${fingerprint}`;

/** One statement must not change a row twice. */
function addRow(rows: Map<string, NewRow>, row: NewRow): void {
  const same = rows.get(keyOf(row));
  if (!same) rows.set(keyOf(row), row);
  else {
    same.count += row.count;
    if (row.firstAt < same.firstAt) same.firstAt = row.firstAt;
    if (row.lastAt > same.lastAt) same.lastAt = row.lastAt;
  }
}

async function upsert(em: EntityManager, rows: NewRow[]): Promise<void> {
  await em.execute(
    sql`insert into refusals (id, org_id, env_id, inbox_id, direction, stage, reason, response_code, response, sender,
        recipient, client_ip, count, hour, fingerprint, first_at, last_at)
      select id, "organizationId", "environmentId", "inboxId", direction, stage, reason, "responseCode", response, sender,
        recipient, "clientIp", count, hour, decode(fingerprint, 'hex'), "firstAt", "lastAt"
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (id text, "organizationId" text, "environmentId" text,
        "inboxId" text, direction text, stage text, reason text, "responseCode" int, response text, sender text,
        recipient text, "clientIp" text, count int, hour timestamptz, fingerprint text, "firstAt" timestamptz,
        "lastAt" timestamptz)
      on conflict (org_id, hour, fingerprint) do update
        set count = refusals.count + excluded.count, last_at = greatest(refusals.last_at, excluded.last_at),
          client_ip = excluded.client_ip`,
  );
}
