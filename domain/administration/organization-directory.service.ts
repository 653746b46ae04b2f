import { type Expression, type SqlBool, sql } from 'kysely';
import { createdIn } from '../../platform/database/creation-range.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
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

export type OrganizationDirectoryService = ReturnType<typeof createOrganizationDirectoryService>;

export function createOrganizationDirectoryService({
  database,
  now = () => new Date(),
}: {
  database: Database;
  now?: () => Date;
}) {
  return {
    list: (staff: StaffScope, filter: DirectoryFilter, page: PageRequest): Promise<Page<DirectoryEntry>> =>
      database.staffTransaction(staff, ({ db }) => findEntries(db, filterConditions(filter), page)),

    /**
     * Finds organizations by a part of their name, by the beginning of their slug, of a domain or of a member's address, or
     * by a whole id or inbox address.
     */
    search: (staff: StaffScope, query: string, page: PageRequest): Promise<Page<DirectoryEntry>> =>
      database.staffTransaction(staff, ({ db }) => findEntries(db, [matches(db, query)], page)),

    /** Finds the organizations with the highest counter of this month, without changes of the last minute. */
    top: (
      staff: StaffScope,
      counter: UsageCounter,
      limit: number,
    ): Promise<{ organization: DirectoryEntry; value: number }[]> =>
      database.staffTransaction(staff, async ({ db }) => {
        const period = counter === STORAGE_COUNTER ? new Date(0) : monthOf(now()).start;
        const entries = await selectEntries(db)
          .innerJoin('usage_counters as u', 'u.org_id', 'organizations.id')
          .select('u.amount as value')
          .where('u.counter', '=', counter)
          .where('u.period_start', '=', period)
          .where('u.amount', '>', 0)
          .orderBy('u.amount', 'desc')
          .orderBy('organizations.id')
          .limit(limit)
          .execute();
        return entries.map(({ value, ...organization }) => ({ organization, value }));
      }),
  };
}

/** Reads one entry. Returns undefined if there is no such organization. */
export function findDirectoryEntry(db: Db, id: string): Promise<DirectoryEntry | undefined> {
  return selectEntries(db).where('organizations.id', '=', id).executeTakeFirst();
}

const STATUS = sql<DirectoryStatus>`case when organizations.deleted_at is null then organizations.status else 'closed' end`;

const selectEntries = (db: Db) =>
  db
    .selectFrom('organizations')
    .select((eb) => [
      'organizations.id',
      'organizations.name',
      'organizations.slug',
      STATUS.as('status'),
      'organizations.tier',
      'organizations.created_at as createdAt',
      'organizations.updated_at as updatedAt',
      'organizations.deleted_at as deletedAt',
      sql<SuspensionReason[]>`array(${eb
        .selectFrom('suspensions as s')
        .select('s.reason')
        .whereRef('s.target_id', '=', 'organizations.id')
        .where('s.lifted_at', 'is', null)
        .orderBy('s.reason')})`.as('suspendedFor'),
    ]);

function findEntries(
  db: Db,
  conditions: Expression<SqlBool>[],
  page: PageRequest,
): Promise<Page<DirectoryEntry>> {
  const entries = selectEntries(db).where((eb) => eb.and(conditions));
  return findPage(entries, 'organizations.id', page);
}

function filterConditions({
  status,
  tier,
  createdAfter,
  createdBefore,
}: DirectoryFilter): Expression<SqlBool>[] {
  const all = createdIn('organization', 'organizations', { from: createdAfter, before: createdBefore });
  if (status !== undefined) all.push(sql`${STATUS} = ${status}`);
  if (tier !== undefined) all.push(sql`organizations.tier = ${tier}`);
  return all;
}

function matches(db: Db, query: string): Expression<SqlBool> {
  const whole = query.trim().toLowerCase();
  const beginning = `${escapePattern(whole)}%`;
  const found = db
    .selectFrom('organizations as o')
    .select('o.id')
    .where((eb) =>
      eb.or([
        eb('o.id', '=', query.trim()),
        eb('o.slug', 'like', beginning),
        eb('o.name', 'ilike', `%${beginning}`),
      ]),
    )
    .unionAll(db.selectFrom('domains').select('org_id as id').where('domain_name', 'like', beginning))
    .unionAll(db.selectFrom('inboxes').select('org_id as id').where('email', '=', whole))
    .unionAll(
      db
        .selectFrom('members as m')
        .innerJoin('users as u', 'u.id', 'm.user_id')
        .select('m.org_id as id')
        .where('u.email', 'like', beginning)
        .where('u.deleted_at', 'is', null),
    );
  return sql`organizations.id in ${found}`;
}

const escapePattern = (text: string): string => text.replace(/[\\%_]/g, '\\$&');

/** @throws AppError `not_found`. Closed organizations are accepted. */
export async function requireOrganization(db: Db, id: string): Promise<void> {
  await db
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => notFound('organization', id));
}
