import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import { joinSql, type Sql } from '../../platform/database/sql.ts';
import { storableText } from '../../platform/database/storable.ts';
import { notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import type { MemberRole } from '../identity/roles.ts';
import type { StaffRole } from '../staff/staff-scope.ts';

export const ACCOUNT_STATUSES = ['active', 'suspended', 'deleted'] as const;
export type AccountStatus = (typeof ACCOUNT_STATUSES)[number];

export interface UserFilter {
  /** Part of the address or name, or the id. */
  query?: string;
  status?: AccountStatus;
  organizationId?: string;
  isStaff?: boolean;
}

export interface UserSummary {
  id: string;
  email: string;
  name: string | null;
  /** `deleted` also for a suspended person who deleted the account. */
  status: AccountStatus;
  emailVerifiedAt: Date | null;
  /** Number of confirmed second factors. */
  factorCount: number;
  membershipCount: number;
  /** Null for people who are not staff. */
  staffRole: StaffRole | null;
  /** Null for a person who has no session any longer. */
  lastSeenAt: Date | null;
  createdAt: Date;
  deletedAt: Date | null;
}

export interface UserMembership {
  organizationId: string;
  organizationName: string;
  role: MemberRole;
  createdAt: Date;
}

export interface UserSession {
  id: string;
  kind: string;
  method: string;
  factors: string[];
  ip: string;
  userAgent: string | null;
  createdAt: Date;
  lastSeenAt: Date;
  expiresAt: Date;
}

export interface UserFactor {
  id: string;
  type: string;
  name: string;
  createdAt: Date;
  lastUsedAt: Date | null;
}

export interface UserDetails extends UserSummary {
  /** The newest of each, at most {@link MAX_LISTED}. */
  memberships: UserMembership[];
  sessions: UserSession[];
  factors: UserFactor[];
}

export const MAX_LISTED = 100;

const STATUS = sql`case when u.deleted_at is not null then 'deleted' else u.status end`;
const SELECT = sql`
  select u.id, u.email, u.name, ${STATUS} as status, u.email_verified_at as "emailVerifiedAt",
    (select count(*)::int from mfa_enrollments e where e.user_id = u.id and e.confirmed_at is not null) as "factorCount",
    (select count(*)::int from members m where m.user_id = u.id) as "membershipCount",
    (select s.role from staff_members s where s.user_id = u.id) as "staffRole",
    (select max(s.last_seen_at) from sessions s where s.user_id = u.id) as "lastSeenAt",
    u.created_at as "createdAt", u.deleted_at as "deletedAt"
  from users u`;

export async function findUsers(
  em: EntityManager,
  filter: UserFilter,
  page: PageRequest,
): Promise<Page<UserSummary>> {
  const rows = await em.execute<SerializedRow<UserSummary>[]>(sql`
    ${SELECT} where ${joinSql(conditions(filter, page), ' and ')}
    order by u.id ${page.order === 'asc' ? sql`asc` : sql`desc`} limit ${page.limit + 1}`);
  return toPage(rows.map(parseUser), page.limit, ({ id }) => [id]);
}

/** @throws AppError `not_found`. */
export async function readUser(em: EntityManager, userId: string): Promise<UserDetails> {
  const [row] = await em.execute<SerializedRow<UserSummary>[]>(sql`${SELECT} where u.id = ${userId}`);
  if (!row) throw notFound('user', userId);
  const memberships = await em.execute<SerializedRow<UserMembership>[]>(sql`
    select m.org_id as "organizationId", o.name as "organizationName", m.role, m.created_at as "createdAt"
    from members m join organizations o on o.id = m.org_id where m.user_id = ${userId}
    order by m.org_id desc limit ${MAX_LISTED}`);
  const sessions = await em.execute<SerializedRow<UserSession>[]>(sql`
    select id, kind, method, factors, ip, user_agent as "userAgent", created_at as "createdAt",
      last_seen_at as "lastSeenAt", expires_at as "expiresAt"
    from sessions where user_id = ${userId} and revoked_at is null and expires_at > now()
    order by id desc limit ${MAX_LISTED}`);
  const factors = await em.execute<SerializedRow<UserFactor>[]>(sql`
    select id, type, name, created_at as "createdAt", last_used_at as "lastUsedAt" from mfa_enrollments
    where user_id = ${userId} and confirmed_at is not null order by id desc limit ${MAX_LISTED}`);
  return {
    ...parseUser(row),
    memberships: memberships.map((membership) => ({
      ...membership,
      createdAt: new Date(membership.createdAt),
    })),
    sessions: sessions.map((session) => ({
      ...session,
      createdAt: new Date(session.createdAt),
      lastSeenAt: new Date(session.lastSeenAt),
      expiresAt: new Date(session.expiresAt),
    })),
    factors: factors.map((factor) => ({
      ...factor,
      createdAt: new Date(factor.createdAt),
      lastUsedAt: parseTimestamp(factor.lastUsedAt),
    })),
  };
}

function conditions(
  { query, status, organizationId, isStaff }: UserFilter,
  { after: [after] = [], order }: PageRequest,
): Sql[] {
  const all: Sql[] = [sql`true`];
  if (query !== undefined) {
    const text = storableText(query);
    const pattern = `%${text.replace(/[\\%_]/g, '\\$&')}%`;
    all.push(sql`(u.id = ${text} or u.email ilike ${pattern} or u.name ilike ${pattern})`);
  }
  if (status !== undefined) all.push(sql`${STATUS} = ${status}`);
  if (organizationId !== undefined)
    all.push(sql`exists (select from members m where m.user_id = u.id and m.org_id = ${organizationId})`);
  if (isStaff !== undefined) {
    const isMember = sql`exists (select from staff_members s where s.user_id = u.id)`;
    all.push(isStaff ? isMember : sql`not ${isMember}`);
  }
  if (after !== undefined) all.push(order === 'asc' ? sql`u.id > ${after}` : sql`u.id < ${after}`);
  return all;
}

const parseUser = (row: SerializedRow<UserSummary>): UserSummary => ({
  ...row,
  emailVerifiedAt: parseTimestamp(row.emailVerifiedAt),
  lastSeenAt: parseTimestamp(row.lastSeenAt),
  createdAt: new Date(row.createdAt),
  deletedAt: parseTimestamp(row.deletedAt),
});
