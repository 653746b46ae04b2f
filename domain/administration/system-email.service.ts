import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import { joinSql, type Sql } from '../../platform/database/sql.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
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
  /** When the link in it stops working; null for an email without one. */
  linkExpiresAt: Date | null;
}

/** `error`: why the email is not sent again. */
export type RetryResult = { id: string } & ({ status: 'done' } | { status: 'failed'; error: AppError });

export interface SystemEmailFilter {
  status: NotificationStatus;
  organizationId?: string | undefined;
}

export interface SystemEmailService {
  list(staff: StaffScope, filter: SystemEmailFilter, page: PageRequest): Promise<Page<SystemEmail>>;
  /**
   * Sends failed emails again, each in a transaction of its own: one that cannot be sent again does not affect the others.
   * An id that occurs twice counts once.
   */
  retry(staff: StaffScope, ids: readonly string[], note: string): Promise<RetryResult[]>;
}

export function createSystemEmailService({
  database,
  outbox,
}: {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
}): SystemEmailService {
  const retryOne = (staff: StaffScope, id: string, note: string) =>
    database.staffTransaction(staff, async (transaction) => {
      const { template, organizationId, episode } = await retryNotification(transaction, outbox, id);
      await recordStaffAudit(transaction.em, staff, {
        action: 'system_email.retried',
        resourceType: 'system_email',
        resourceId: id,
        organizationIds: organizationId === null ? [] : [organizationId],
        reason: note,
        details: { template, episode },
      });
    });
  return {
    list: (staff, filter, page) =>
      database.staffTransaction(staff, async ({ em }) => {
        const rows = await em.execute<SerializedRow<Omit<SystemEmail, 'linkExpiresAt'>>[]>(sql`
          select id, org_id as "organizationId", user_id as "userId", email, template, status, attempts,
            last_error as "lastError", next_attempt_at as "nextAttemptAt", created_at as "createdAt", sent_at as "sentAt"
          from notifications where ${joinSql(conditions(filter, page), ' and ')}
          order by id ${page.order === 'asc' ? sql`asc` : sql`desc`} limit ${page.limit + 1}`);
        return toPage(rows.map(parseEmail), page.limit, ({ id }) => [id]);
      }),

    async retry(staff, ids, note) {
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

/** The status is text of the statement, so that the planner finds the index of failed ones. */
const STATUS_CONDITIONS: Record<NotificationStatus, Sql> = {
  pending: sql`status = 'pending'`,
  sending: sql`status = 'sending'`,
  sent: sql`status = 'sent'`,
  failed: sql`status = 'failed'`,
};

function conditions(
  { status, organizationId }: SystemEmailFilter,
  { after: [after] = [], order }: PageRequest,
): Sql[] {
  const all: Sql[] = [STATUS_CONDITIONS[status]];
  if (organizationId !== undefined) all.push(sql`org_id = ${organizationId}`);
  if (after !== undefined) all.push(order === 'asc' ? sql`id > ${after}` : sql`id < ${after}`);
  return all;
}

function parseEmail(row: SerializedRow<Omit<SystemEmail, 'linkExpiresAt'>>): SystemEmail {
  const createdAt = new Date(row.createdAt);
  return {
    ...row,
    createdAt,
    nextAttemptAt: parseTimestamp(row.nextAttemptAt),
    sentAt: parseTimestamp(row.sentAt),
    linkExpiresAt: linkExpiresAt({ template: row.template, createdAt }),
  };
}
