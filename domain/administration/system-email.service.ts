import { type Expression, type SqlBool, sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { linkExpiresAt } from '../notifications/link-lifetimes.ts';
import type { Notification, NotificationStatus } from '../notifications/notification.entity.ts';
import { retryNotification } from '../notifications/retry-notification.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';

/** An email of the service itself, without its content. */
export interface SystemEmail
  extends Pick<
    Notification,
    | 'id'
    | 'organizationId'
    | 'userId'
    | 'email'
    | 'template'
    | 'status'
    | 'attempts'
    | 'lastError'
    | 'nextAttemptAt'
    | 'createdAt'
    | 'sentAt'
  > {
  /** When the link in the email expires; null for an email without a link. */
  linkExpiresAt: Date | null;
}

/** `error`: why the email is not sent again. */
export type RetryResult = { id: string } & ({ status: 'done' } | { status: 'failed'; error: AppError });

export interface SystemEmailFilter {
  status: NotificationStatus;
  organizationId?: string | undefined;
}

export type SystemEmailService = ReturnType<typeof createSystemEmailService>;

export function createSystemEmailService({
  database,
  outbox,
}: {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
}) {
  const retryOne = (staff: StaffScope, id: string, note: string) =>
    database.staffTransaction(staff, async (transaction) => {
      const { template, organizationId, generation } = await retryNotification(transaction, outbox, id);
      await recordStaffAudit(transaction.db, staff, {
        action: 'system_email.retried',
        resourceType: 'system_email',
        resourceId: id,
        organizationIds: organizationId === null ? [] : [organizationId],
        reason: note,
        details: { template, generation },
      });
    });
  return {
    list: (staff: StaffScope, filter: SystemEmailFilter, page: PageRequest): Promise<Page<SystemEmail>> =>
      database.staffTransaction(staff, ({ db }) => findEmails(db, filter, page)),

    /**
     * Sends failed emails again, each in its own transaction, so that a failure does not affect the others. A repeated id
     * counts once.
     */
    async retry(staff: StaffScope, ids: readonly string[], note: string): Promise<RetryResult[]> {
      const results: RetryResult[] = [];
      for (const id of new Set(ids)) {
        try {
          await retryOne(staff, id, note);
          results.push({ id, status: 'done' });
        } catch (error) {
          if (!(error instanceof AppError) || error.status >= 500) throw error;
          results.push({ id, status: 'failed', error });
        }
      }
      return results;
    },
  };
}

/** The status is a literal in the statement, so that the planner can use the partial index of failed emails. */
const HAS_STATUS: Record<NotificationStatus, Expression<SqlBool>> = {
  pending: sql`status = 'pending'`,
  sending: sql`status = 'sending'`,
  sent: sql`status = 'sent'`,
  failed: sql`status = 'failed'`,
};

async function findEmails(
  db: Db,
  { status, organizationId }: SystemEmailFilter,
  page: PageRequest,
): Promise<Page<SystemEmail>> {
  const emails = db
    .selectFrom('notifications')
    .select([
      'id',
      'org_id as organizationId',
      'user_id as userId',
      'email',
      'template',
      'status',
      'attempts',
      'last_error as lastError',
      'next_attempt_at as nextAttemptAt',
      'created_at as createdAt',
      'sent_at as sentAt',
    ])
    .where(HAS_STATUS[status])
    .$if(organizationId !== undefined, (each) => each.where('org_id', '=', organizationId ?? null));
  const { items, next } = await findPage(emails, 'notifications.id', page);
  return { items: items.map((email) => ({ ...email, linkExpiresAt: linkExpiresAt(email) })), next };
}
