import { sql } from '@mikro-orm/core';
import { createdWithin } from '../../platform/database/created-within.ts';
import type { Database } from '../../platform/database/database.ts';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import { joinSql, type Sql } from '../../platform/database/sql.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import type { Tier } from '../organizations/tier.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import type { SuspensionReason } from '../suspensions/suspension.entity.ts';
import { STORAGE_COUNTER, type UsageCounter } from '../usage/counters.ts';
import { monthOf } from '../usage/periods.ts';

/** `closed`: its owner deleted it; it can be recovered for 30 days. */
export const DIRECTORY_STATUSES = ['active', 'suspended', 'closed'] as const;
export type DirectoryStatus = (typeof DIRECTORY_STATUSES)[number];

export interface DirectoryEntry {
  id: string;
  name: string;
  slug: string;
  status: DirectoryStatus;
  tier: Tier;
  /** Why the organization itself is suspended, not its environments and inboxes. */
  suspendedFor: SuspensionReason[];
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
}

export interface DirectoryFilter {
  status?: DirectoryStatus | undefined;
  tier?: Tier | undefined;
  createdAfter?: Date | undefined;
  createdBefore?: Date | undefined;
}

export interface OrganizationDirectoryService {
  list(staff: StaffScope, filter: DirectoryFilter, page: PageRequest): Promise<Page<DirectoryEntry>>;
  /**
   * Organizations by a part of their name, the beginning of their slug, a domain or a member's address, or a whole id or
   * inbox address.
   */
  search(staff: StaffScope, query: string, page: PageRequest): Promise<Page<DirectoryEntry>>;
  /** Those with the highest counter of this month, without the changes of the last minute. */
  top(
    staff: StaffScope,
    counter: UsageCounter,
    limit: number,
  ): Promise<{ organization: DirectoryEntry; value: number }[]>;
}

export function createOrganizationDirectoryService({
  database,
  now = () => new Date(),
}: {
  database: Database;
  now?: () => Date;
}): OrganizationDirectoryService {
  return {
    list: (staff, filter, page) =>
      database.staffTransaction(staff, ({ em }) => readPage(em, filterConditions(filter), page)),

    search: (staff, query, page) =>
      database.staffTransaction(staff, ({ em }) => readPage(em, [matches(query)], page)),

    top: (staff, counter, limit) =>
      database.staffTransaction(staff, async ({ em }) => {
        const period = counter === STORAGE_COUNTER ? new Date(0) : monthOf(now()).start;
        const rows = await em.execute<(SerializedRow<DirectoryEntry> & { value: number })[]>(sql`
          select ${COLUMNS}, u.amount::float8 as value
          from usage_counters u join organizations o on o.id = u.org_id
          where u.counter = ${counter} and u.period_start = ${period} and u.amount > 0
          order by u.amount desc, o.id limit ${limit}`);
        return rows.map(({ value, ...row }) => ({ organization: toEntry(row), value }));
      }),
  };
}

/** Reads one entry. Returns undefined if there is no such organization. */
export async function findDirectoryEntry(reader: RowReader, id: string): Promise<DirectoryEntry | undefined> {
  const [row] = await reader.execute<SerializedRow<DirectoryEntry>[]>(
    sql`select ${COLUMNS} from organizations o where o.id = ${id}`,
  );
  return row && toEntry(row);
}

const STATUS = sql`case when o.deleted_at is null then o.status else 'closed' end`;
const COLUMNS = sql`o.id, o.name, o.slug, ${STATUS} as status, o.tier, o.created_at as "createdAt",
  o.updated_at as "updatedAt", o.deleted_at as "deletedAt",
  array(select s.reason from suspensions s where s.target_id = o.id and s.lifted_at is null order by s.reason)
    as "suspendedFor"`;

async function readPage(
  reader: RowReader,
  conditions: Sql[],
  { after: [after] = [], order, limit }: PageRequest,
): Promise<Page<DirectoryEntry>> {
  if (after !== undefined) conditions.push(order === 'asc' ? sql`o.id > ${after}` : sql`o.id < ${after}`);
  const rows = await reader.execute<SerializedRow<DirectoryEntry>[]>(sql`
    select ${COLUMNS} from organizations o where ${joinSql(conditions, ' and ')}
    order by o.id ${order === 'asc' ? sql`asc` : sql`desc`} limit ${limit + 1}`);
  return toPage(rows.map(toEntry), limit, ({ id }) => [id]);
}

function filterConditions({ status, tier, createdAfter, createdBefore }: DirectoryFilter): Sql[] {
  const all: Sql[] = [sql`true`];
  if (status !== undefined) all.push(sql`${STATUS} = ${status}`);
  if (tier !== undefined) all.push(sql`o.tier = ${tier}`);
  const columns = { id: sql`o.id`, createdAt: sql`o.created_at` };
  all.push(...createdWithin('organization', columns, { from: createdAfter, before: createdBefore }));
  return all;
}

function matches(query: string): Sql {
  const whole = query.trim().toLowerCase();
  const beginning = `${escapePattern(whole)}%`;
  return sql`o.id in (
    select id from organizations where id = ${query.trim()} or slug like ${beginning} or name ilike ${`%${beginning}`}
    union all select org_id from domains where domain_name like ${beginning}
    union all select org_id from inboxes where email = ${whole}
    union all select m.org_id from members m join users u on u.id = m.user_id
      where u.email like ${beginning} and u.deleted_at is null)`;
}

const escapePattern = (text: string): string => text.replace(/[\\%_]/g, '\\$&');

const toEntry = (row: SerializedRow<DirectoryEntry>): DirectoryEntry => ({
  ...row,
  createdAt: new Date(row.createdAt),
  updatedAt: new Date(row.updatedAt),
  deletedAt: parseTimestamp(row.deletedAt),
});
