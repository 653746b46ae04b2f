import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { removeFactors, setAccountStatus } from '../people/account-status.ts';
import { endSessions } from '../sessions/session.service.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import { requireMayChange } from '../staff/require-admin.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { findUsers, readUser, type UserDetails, type UserFilter, type UserSummary } from './find-users.ts';

/** Staff act on the accounts of people. Each change is in the logs of all organizations of the person, who gets an email. */
export interface UserAdministrationService {
  list(staff: StaffScope, filter: UserFilter, page: PageRequest): Promise<Page<UserSummary>>;
  /** @throws AppError `not_found`. */
  get(staff: StaffScope, userId: string): Promise<UserDetails>;
  /**
   * Ends the sessions of a person, who cannot sign in until {@link reinstate}. Their API keys belong to the organizations and
   * keep working.
   *
   * @throws AppError `not_found`; `conflict` for the caller themselves, or a suspended person; `permission_denied` for staff,
   * unless the caller is an admin.
   */
  suspend(staff: StaffScope, userId: string, note: string): Promise<UserDetails>;
  /** @throws AppError as {@link suspend}; `conflict` for a person who is not suspended. */
  reinstate(staff: StaffScope, userId: string, note: string): Promise<UserDetails>;
  /** Ends all sessions of a person. @throws AppError as {@link suspend}. Returns their number. */
  revokeSessions(staff: StaffScope, userId: string, note: string): Promise<number>;
  /**
   * Removes all second factors, passkeys and recovery codes of a person, and ends their sessions.
   *
   * @throws AppError as {@link suspend}; `conflict` for a person without factors.
   */
  resetMfa(staff: StaffScope, userId: string, note: string): Promise<UserDetails>;
}

export interface UserAdministrationOptions {
  database: Database;
  notifications: PersonNotificationService;
}

type Template = 'account-suspended' | 'account-reinstated' | 'sessions-ended-by-staff' | 'mfa-reset-by-staff';

export function createUserAdministrationService({
  database,
  notifications,
}: UserAdministrationOptions): UserAdministrationService {
  /** Runs a change with everything that belongs to it. `work` returns what the log should contain. */
  const change = <Result>(
    staff: StaffScope,
    { userId, note, action, template }: { userId: string; note: string; action: string; template: Template },
    work: (em: EntityManager) => Promise<{ details: Record<string, unknown>; result: Result }>,
  ): Promise<Result> =>
    database.staffTransaction(staff, async (transaction) => {
      const { em } = transaction;
      const person = await lockUser(em, userId);
      await requireMayChange(em, staff, userId);
      const { details, result } = await work(em);
      await recordStaffAudit(em, staff, {
        action,
        resourceType: 'user',
        resourceId: userId,
        organizationIds: await findOrganizationIds(em, userId),
        reason: note,
        details,
      });
      await inform(transaction, person, template);
      return result;
    });

  const inform = async (transaction: Transaction, person: LockedUser, template: Template): Promise<void> => {
    if (person.isDeleted) return;
    await notifications.notify(transaction, {
      userId: person.id,
      email: person.email,
      template,
      params: { at: formatUtc(new Date()) },
    });
  };

  return {
    list: (staff, filter, page) => database.staffTransaction(staff, ({ em }) => findUsers(em, filter, page)),

    get: (staff, userId) => database.staffTransaction(staff, ({ em }) => readUser(em, userId)),

    suspend: (staff, userId, note) =>
      change(staff, { userId, note, action: 'user.suspended', template: 'account-suspended' }, async (em) => {
        if (!(await setAccountStatus(em, userId, 'suspended'))) throw hasStatus('suspended already');
        const sessions = await endSessions(em, userId, null);
        return { details: { sessions_ended: sessions }, result: await readUser(em, userId) };
      }),

    reinstate: (staff, userId, note) =>
      change(
        staff,
        { userId, note, action: 'user.reinstated', template: 'account-reinstated' },
        async (em) => {
          if (!(await setAccountStatus(em, userId, 'active'))) throw hasStatus('not suspended');
          return { details: {}, result: await readUser(em, userId) };
        },
      ),

    revokeSessions: (staff, userId, note) =>
      change(
        staff,
        { userId, note, action: 'user.sessions_revoked', template: 'sessions-ended-by-staff' },
        async (em) => {
          const result = await endSessions(em, userId, null);
          return { details: { sessions_ended: result }, result };
        },
      ),

    resetMfa: (staff, userId, note) =>
      change(
        staff,
        { userId, note, action: 'user.mfa_reset', template: 'mfa-reset-by-staff' },
        async (em) => {
          const removed = await removeFactors(em, userId);
          if (removed === 0) throw hasStatus('without a second factor');
          const sessions = await endSessions(em, userId, null);
          return {
            details: { factors_removed: removed, sessions_ended: sessions },
            result: await readUser(em, userId),
          };
        },
      ),
  };
}

interface LockedUser {
  id: string;
  email: string;
  isDeleted: boolean;
}

async function lockUser(em: EntityManager, userId: string): Promise<LockedUser> {
  const [user] = await em.execute<LockedUser[]>(sql`
    select id, email, deleted_at is not null as "isDeleted" from users where id = ${userId} for update`);
  if (!user) throw notFound('user', userId);
  return user;
}

async function findOrganizationIds(em: EntityManager, userId: string): Promise<string[]> {
  const rows = await em.execute<{ id: string }[]>(
    sql`select org_id as id from members where user_id = ${userId} order by org_id`,
  );
  return rows.map(({ id }) => id);
}

function hasStatus(status: string): AppError {
  return new AppError('conflict', {
    detail: `The person is ${status}.`,
    fix: 'Get the person again to see the current state.',
  });
}
