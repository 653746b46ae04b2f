import { type Expression, type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import { findPage } from '../../platform/database/pages.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
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
  /** `deleted` also for a suspended person who has deleted the account. */
  status: AccountStatus;
  emailVerifiedAt: Date | null;
  /** Number of confirmed second factors. */
  factorCount: number;
  membershipCount: number;
  /** Null for people who are not staff. */
  staffRole: StaffRole | null;
  /** Null for a person without a session. */
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
  /** Newest first, at most {@link MAX_LISTED} of each. */
  memberships: UserMembership[];
  sessions: UserSession[];
  factors: UserFactor[];
}

export const MAX_LISTED = 100;

export function findUsers(db: Db, filter: UserFilter, page: PageRequest): Promise<Page<UserSummary>> {
  const { query, status, organizationId, isStaff } = filter;
  const users = selectUsers(db)
    .$if(query !== undefined, (each) => each.where((eb) => matches(eb, query ?? '')))
    .$if(status !== undefined, (each) => each.where(STATUS, '=', status ?? 'active'))
    .$if(organizationId !== undefined, (each) =>
      each.where('users.id', 'in', (eb) =>
        eb
          .selectFrom('members')
          .select('user_id')
          .where('org_id', '=', organizationId ?? ''),
      ),
    )
    .$if(isStaff !== undefined, (each) =>
      each.where('users.id', isStaff ? 'in' : 'not in', (eb) =>
        eb.selectFrom('staff_members').select('user_id'),
      ),
    );
  return findPage(users, 'users.id', page);
}

/** @throws AppError `not_found`. */
export async function readUser(db: Db, userId: string): Promise<UserDetails> {
  const user = await selectUsers(db)
    .where('users.id', '=', userId)
    .executeTakeFirstOrThrow(() => notFound('user', userId));
  return {
    ...user,
    memberships: await findMemberships(db, userId),
    sessions: await findSessions(db, userId),
    factors: await findFactors(db, userId),
  };
}

const STATUS = sql<AccountStatus>`case when users.deleted_at is not null then 'deleted' else users.status end`;

const selectUsers = (db: Db) =>
  db.selectFrom('users').select((eb) => [
    'users.id',
    'users.email',
    'users.name',
    STATUS.as('status'),
    'users.email_verified_at as emailVerifiedAt',
    eb
      .selectFrom('mfa_enrollments as e')
      .select((e) => e.fn.countAll<number>().as('count'))
      .whereRef('e.user_id', '=', 'users.id')
      .where('e.confirmed_at', 'is not', null)
      .$asScalar()
      .$notNull()
      .as('factorCount'),
    eb
      .selectFrom('members as m')
      .select((m) => m.fn.countAll<number>().as('count'))
      .whereRef('m.user_id', '=', 'users.id')
      .$asScalar()
      .$notNull()
      .as('membershipCount'),
    eb
      .selectFrom('staff_members as s')
      .select('s.role')
      .whereRef('s.user_id', '=', 'users.id')
      .as('staffRole'),
    eb
      .selectFrom('sessions as s')
      .select((each) => each.fn.max('s.last_seen_at').as('at'))
      .whereRef('s.user_id', '=', 'users.id')
      .as('lastSeenAt'),
    'users.created_at as createdAt',
    'users.deleted_at as deletedAt',
  ]);

function matches(eb: ExpressionBuilder<Tables, 'users'>, query: string): Expression<SqlBool> {
  const text = storableText(query);
  const pattern = `%${text.replace(/[\\%_]/g, '\\$&')}%`;
  return eb.or([
    eb('users.id', '=', text),
    eb('users.email', 'ilike', pattern),
    eb('users.name', 'ilike', pattern),
  ]);
}

function findMemberships(db: Db, userId: string): Promise<UserMembership[]> {
  return db
    .selectFrom('members as m')
    .innerJoin('organizations as o', 'o.id', 'm.org_id')
    .select([
      'm.org_id as organizationId',
      'o.name as organizationName',
      'm.role',
      'm.created_at as createdAt',
    ])
    .where('m.user_id', '=', userId)
    .orderBy('m.org_id', 'desc')
    .limit(MAX_LISTED)
    .execute();
}

function findSessions(db: Db, userId: string): Promise<UserSession[]> {
  return db
    .selectFrom('sessions')
    .select([
      'id',
      'kind',
      'method',
      'factors',
      'ip',
      'user_agent as userAgent',
      'created_at as createdAt',
      'last_seen_at as lastSeenAt',
      'expires_at as expiresAt',
    ])
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .orderBy('id', 'desc')
    .limit(MAX_LISTED)
    .execute();
}

function findFactors(db: Db, userId: string): Promise<UserFactor[]> {
  return db
    .selectFrom('mfa_enrollments')
    .select(['id', 'type', 'name', 'created_at as createdAt', 'last_used_at as lastUsedAt'])
    .where('user_id', '=', userId)
    .where('confirmed_at', 'is not', null)
    .orderBy('id', 'desc')
    .limit(MAX_LISTED)
    .execute();
}
