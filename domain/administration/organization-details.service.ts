import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { type AuditFilter, type AuditLogEntry, listAuditEntries } from '../audit/audit-log.service.ts';
import { findPolicies, type Policies } from '../policies/find-policies.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { type OrganizationLimits, readOrganizationLimits } from '../usage/limit.service.ts';
import { monthOf, type Period } from '../usage/periods.ts';
import { type LedgerEntry, type LedgerKind, listLedgerEntries } from '../usage/usage-ledger.ts';
import { readUsageStatuses, type UsageStatus } from '../usage/usage-status.ts';
import {
  type DirectoryEntry,
  findDirectoryEntry,
  requireOrganization,
} from './organization-directory.service.ts';

export interface OwnerDetails {
  userId: string;
  email: string;
  name: string | null;
  /** `deleted`: the account can be recovered for 30 days. */
  status: 'active' | 'suspended' | 'deleted';
}

export interface EnvironmentDetails {
  id: string;
  name: string;
  slug: string;
  kind: 'production' | 'sandbox';
  status: 'active' | 'suspended';
}

export interface OrganizationCounts {
  members: number;
  environments: number;
  inboxes: number;
  domains: number;
  /** Neither revoked nor expired. */
  apiKeys: number;
  /** Open suspensions, including those of environments and inboxes. */
  openSuspensions: number;
}

export interface OrganizationDetails extends DirectoryEntry {
  counts: OrganizationCounts;
  owners: OwnerDetails[];
  environments: EnvironmentDetails[];
  policies: Policies;
  usage: OrganizationUsage;
  limits: OrganizationLimits;
}

export interface OrganizationUsage {
  period: Period;
  counters: UsageStatus[];
}

export type OrganizationDetailsService = ReturnType<typeof createOrganizationDetailsService>;

/** Details of one organization for staff, without its mail. Closed organizations are included. */
export function createOrganizationDetailsService({
  database,
  now = () => new Date(),
}: {
  database: Database;
  now?: () => Date;
}) {
  const read = <T>(staff: StaffScope, organizationId: string, work: (db: Db) => Promise<T>) =>
    database.staffTransaction(staff, async ({ db }) => {
      await requireOrganization(db, organizationId);
      return work(db);
    });
  const readUsage = async (db: Db, organizationId: string): Promise<OrganizationUsage> => ({
    period: monthOf(now()),
    counters: await readUsageStatuses(db, { organizationIds: [organizationId], at: now() }),
  });

  return {
    /** @throws AppError `not_found`, as do the methods below. */
    get: (staff: StaffScope, organizationId: string): Promise<OrganizationDetails> =>
      database.staffTransaction(staff, async ({ db }) => {
        const entry = await findDirectoryEntry(db, organizationId);
        if (!entry) throw notFound('organization', organizationId);
        return {
          ...entry,
          counts: await countParts(db, organizationId),
          owners: await findOwners(db, organizationId),
          environments: await findEnvironments(db, organizationId),
          policies: await findPolicies(db, organizationId),
          usage: await readUsage(db, organizationId),
          limits: await readOrganizationLimits(db, organizationId, now()),
        };
      }),

    getUsage: (staff: StaffScope, organizationId: string): Promise<OrganizationUsage> =>
      read(staff, organizationId, (db) => readUsage(db, organizationId)),

    listUsageEvents: (
      staff: StaffScope,
      organizationId: string,
      { kind }: { kind: LedgerKind | undefined },
      page: PageRequest,
    ): Promise<Page<LedgerEntry>> =>
      read(staff, organizationId, (db) => listLedgerEntries(db, organizationId, { kind, page })),

    /** Lists the organization's own audit log. */
    listAuditEntries: (
      staff: StaffScope,
      organizationId: string,
      filter: AuditFilter,
      page: PageRequest,
    ): Promise<Page<AuditLogEntry>> =>
      read(staff, organizationId, (db) => listAuditEntries(db, organizationId, { filter, page })),
  };
}

/** Maximum number of owners and of environments shown. */
export const MAX_LISTED = 100;

function countParts(db: Db, id: string): Promise<OrganizationCounts> {
  return db
    .selectNoFrom(({ selectFrom }) => [
      selectFrom('members').select(COUNT).where('org_id', '=', id).$asScalar().$notNull().as('members'),
      selectFrom('environments')
        .select(COUNT)
        .where('org_id', '=', id)
        .$asScalar()
        .$notNull()
        .as('environments'),
      selectFrom('inboxes')
        .select(COUNT)
        .where('org_id', '=', id)
        .where('deleted_at', 'is', null)
        .$asScalar()
        .$notNull()
        .as('inboxes'),
      selectFrom('domains').select(COUNT).where('org_id', '=', id).$asScalar().$notNull().as('domains'),
      selectFrom('api_keys')
        .select(COUNT)
        .where('org_id', '=', id)
        .where('revoked_at', 'is', null)
        .where(sql<boolean>`(expires_at is null or expires_at > now())`)
        .$asScalar()
        .$notNull()
        .as('apiKeys'),
      selectFrom('suspensions')
        .select(COUNT)
        .where('org_id', '=', id)
        .where('lifted_at', 'is', null)
        .$asScalar()
        .$notNull()
        .as('openSuspensions'),
    ])
    .executeTakeFirstOrThrow(() => new Error('PostgreSQL returned no counts'));
}

const COUNT = sql<number>`count(*)`.as('count');

function findOwners(db: Db, organizationId: string): Promise<OwnerDetails[]> {
  return db
    .selectFrom('members as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select([
      'u.id as userId',
      'u.email',
      'u.name',
      sql<OwnerDetails['status']>`case when u.deleted_at is null then u.status else 'deleted' end`.as(
        'status',
      ),
    ])
    .where('m.org_id', '=', organizationId)
    .where('m.role', '=', 'owner')
    .orderBy('u.id')
    .limit(MAX_LISTED)
    .execute();
}

function findEnvironments(db: Db, organizationId: string): Promise<EnvironmentDetails[]> {
  return db
    .selectFrom('environments')
    .select(['id', 'name', 'slug', 'kind', 'status'])
    .where('org_id', '=', organizationId)
    .orderBy('id')
    .limit(MAX_LISTED)
    .execute();
}
