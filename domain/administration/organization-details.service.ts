import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { dbOf } from '../../platform/database/bridge.ts';
import type { Database } from '../../platform/database/database.ts';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { type AuditFilter, type AuditLogEntry, listAuditEntries } from '../audit/audit-log.service.ts';
import { findPolicies, type Policies } from '../policies/find-policies.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { type OrganizationLimits, readOrganizationLimits } from '../usage/limit.service.ts';
import { monthOf, type Period } from '../usage/periods.ts';
import { type LedgerEntry, type LedgerKind, listLedgerEntries } from '../usage/usage-ledger.ts';
import { readUsageStatuses, type UsageStatus } from '../usage/usage-status.ts';
import { type DirectoryEntry, findDirectoryEntry } from './organization-directory.service.ts';
import { requireOrganization } from './require-organization.ts';

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
  /** In force, also for environments and inboxes. */
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

/** What staff read about one organization, also a closed one; nothing of its mail. */
export interface OrganizationDetailsService {
  /** @throws AppError `not_found`, as the methods below. */
  get(staff: StaffScope, organizationId: string): Promise<OrganizationDetails>;
  getUsage(staff: StaffScope, organizationId: string): Promise<OrganizationUsage>;
  listUsageEvents(
    staff: StaffScope,
    organizationId: string,
    filter: { kind: LedgerKind | undefined },
    page: PageRequest,
  ): Promise<Page<LedgerEntry>>;
  /** The organization's own audit log. */
  listAuditEntries(
    staff: StaffScope,
    organizationId: string,
    filter: AuditFilter,
    page: PageRequest,
  ): Promise<Page<AuditLogEntry>>;
}

export function createOrganizationDetailsService({
  database,
  now = () => new Date(),
}: {
  database: Database;
  now?: () => Date;
}): OrganizationDetailsService {
  const read = <T>(staff: StaffScope, organizationId: string, work: (reader: RowReader) => Promise<T>) =>
    database.staffTransaction(staff, async ({ em }) => {
      await requireOrganization(em, organizationId);
      return work(em);
    });
  const readUsage = async (reader: RowReader, organizationId: string): Promise<OrganizationUsage> => ({
    period: monthOf(now()),
    counters: await readUsageStatuses(reader, { organizationIds: [organizationId], at: now() }),
  });

  return {
    get: (staff, organizationId) =>
      database.staffTransaction(staff, async ({ em }) => {
        const entry = await findDirectoryEntry(em, organizationId);
        if (!entry) throw notFound('organization', organizationId);
        return {
          ...entry,
          counts: await readCounts(em, organizationId),
          owners: await readOwners(em, organizationId),
          environments: await readEnvironments(em, organizationId),
          policies: await findPolicies(em, organizationId),
          usage: await readUsage(em, organizationId),
          limits: await readOrganizationLimits(em, organizationId, now()),
        };
      }),

    getUsage: (staff, organizationId) =>
      read(staff, organizationId, (reader) => readUsage(reader, organizationId)),

    listUsageEvents: (staff, organizationId, { kind }, page) =>
      read(staff, organizationId, (reader) => listLedgerEntries(reader, organizationId, { kind, page })),

    listAuditEntries: (staff, organizationId, filter, page) =>
      read(staff, organizationId, (reader) =>
        listAuditEntries(dbOf(reader as EntityManager), organizationId, { filter, page }),
      ),
  };
}

/** Maximum number of owners and of environments shown. */
export const MAX_LISTED = 100;

async function readCounts(reader: RowReader, id: string): Promise<OrganizationCounts> {
  const [counts] = await reader.execute<OrganizationCounts[]>(sql`select
    (select count(*)::int from members where org_id = ${id}) as members,
    (select count(*)::int from environments where org_id = ${id}) as environments,
    (select count(*)::int from inboxes where org_id = ${id} and deleted_at is null) as inboxes,
    (select count(*)::int from domains where org_id = ${id}) as domains,
    (select count(*)::int from api_keys where org_id = ${id} and revoked_at is null
      and (expires_at is null or expires_at > now())) as "apiKeys",
    (select count(*)::int from suspensions where org_id = ${id} and lifted_at is null) as "openSuspensions"`);
  return counts as OrganizationCounts;
}

function readOwners(reader: RowReader, organizationId: string): Promise<OwnerDetails[]> {
  return reader.execute<OwnerDetails[]>(sql`
    select u.id as "userId", u.email, u.name, case when u.deleted_at is null then u.status else 'deleted' end as status
    from members m join users u on u.id = m.user_id
    where m.org_id = ${organizationId} and m.role = 'owner' order by u.id limit ${MAX_LISTED}`);
}

function readEnvironments(reader: RowReader, organizationId: string): Promise<EnvironmentDetails[]> {
  return reader.execute<EnvironmentDetails[]>(sql`
    select id, name, slug, kind, status from environments
    where org_id = ${organizationId} order by id limit ${MAX_LISTED}`);
}
