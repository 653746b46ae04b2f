import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { hasExpired } from '../messages/delete-expired-batch.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import {
  DAY_MS,
  isDeleting,
  isReminderDue,
  postponeRetention,
  type RetentionWarning,
  reviewRetention,
  suspendRetention,
  toYearMonth,
} from './retention-plan.ts';
import { type RetentionPolicy, RetentionPolicyEntity } from './retention-policy.entity.ts';
import { buildRetentionStart, lockPolicy, savePolicy } from './retention-policy.service.ts';

export interface RetentionReview {
  /** Messages received or sent before this time are deleted now; null if nothing is deleted. */
  cutoff: string | null;
  /** Number of emails queued. */
  warnings: number;
}

export interface RetentionServiceOptions {
  database: Database;
  outbox: Pick<Outbox, 'enqueue' | 'drain'>;
  notifications: NotificationService;
  now?: () => Date;
}

/** Policies read, and runs started, in one transaction. */
const PAGE_SIZE = 200;
/** A reminder is sent if messages will be deleted within this time. */
const REMINDER_LEAD_MS = 31 * DAY_MS;

/** The steps of the retention workflow. All are idempotent. */
export type RetentionService = ReturnType<typeof createRetentionService>;

export function createRetentionService({
  database,
  outbox,
  notifications,
  now = () => new Date(),
}: RetentionServiceOptions) {
  return {
    /** Queues the emails that are due, puts announced steps into effect, and returns what to delete now. */
    review: (organizationId: string): Promise<RetentionReview> =>
      database.systemTransaction(async (transaction) => {
        const { db } = transaction;
        const policy = await lockPolicy(db, organizationId);
        if (!policy) return NO_ACTION;
        const at = now();
        if (!(await isActive(db, organizationId))) {
          suspendRetention(policy, at);
          await savePolicy(db, policy);
          return NO_ACTION;
        }
        const warnings = reviewRetention(policy, at);
        for (const warning of warnings)
          await sendWarning(transaction, notifications, organizationId, warning);
        const reminded = await sendMonthlyReminder(transaction, notifications, policy, at);
        await savePolicy(db, policy);
        return {
          cutoff: isDeleting(policy) ? getCutoff(policy, at).toISOString() : null,
          warnings: warnings.length + (reminded ? 1 : 0),
        };
      }),

    /** @returns a description of the result for the Temporal UI. */
    postpone: (organizationId: string, days: number): Promise<string> =>
      database.systemTransaction(async ({ db }) => {
        const policy = await lockPolicy(db, organizationId);
        if (!policy || !postponeRetention(policy, days, now())) return 'nothing to postpone';
        await savePolicy(db, policy);
        return `postponed until ${policy.postponedUntil?.toISOString()}`;
      }),

    /**
     * Starts today's run of every organization that needs one.
     *
     * @param onProgress called after each page.
     * @returns the number of runs started.
     */
    async startDailyRuns(onProgress: () => void): Promise<number> {
      const day = now().toISOString().slice(0, 10);
      let started = 0;
      for (let after: string | null = ''; after !== null; ) {
        const page: string = after;
        after = await database.systemTransaction(async (transaction) => {
          const policies = await readPage(transaction.db, page);
          for (const policy of policies) {
            if (!(await needsRun(transaction.db, policy, now()))) continue;
            const { organizationId } = policy;
            outbox.enqueue(transaction, organizationId, { start: buildRetentionStart(organizationId, day) });
            started += 1;
          }
          return policies.length < PAGE_SIZE ? null : (policies.at(-1)?.organizationId ?? null);
        });
        // Backpressure: the next page waits until Temporal has accepted this one.
        await outbox.drain();
        onProgress();
      }
      return started;
    },
  };
}

const NO_ACTION: RetentionReview = { cutoff: null, warnings: 0 };

/**
 * The messages of a suspended or closed organization are not deleted, because it cannot postpone or change its policy,
 * and its recovery must restore everything.
 */
async function isActive(db: Db, organizationId: string): Promise<boolean> {
  const active = await db
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', organizationId)
    .where('status', '=', 'active')
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  return active !== undefined;
}

function getCutoff({ appliedDays }: Pick<RetentionPolicy, 'appliedDays'>, at: Date): Date {
  return new Date(at.getTime() - appliedDays * DAY_MS);
}

function readPage(db: Db, after: string): Promise<RetentionPolicy[]> {
  return db
    .selectFrom('retention_policies')
    .select(columnsOf(RetentionPolicyEntity))
    .where('org_id', '>', after)
    .orderBy('org_id')
    .limit(PAGE_SIZE)
    .execute();
}

async function needsRun(db: Db, policy: RetentionPolicy, at: Date): Promise<boolean> {
  if (policy.steps.length > 0 || policy.postponedUntil) return true;
  if (!isDeleting(policy)) return false;
  if (!(await isActive(db, policy.organizationId))) return true;
  const leadMs = isReminderDue(policy, at) ? REMINDER_LEAD_MS : 0;
  return hasMessagesBefore(db, policy.organizationId, new Date(getCutoff(policy, at).getTime() + leadMs));
}

async function hasMessagesBefore(db: Db, organizationId: string, before: Date): Promise<boolean> {
  const environments = await db
    .selectFrom('environments')
    .select('id')
    .where('org_id', '=', organizationId)
    .execute();
  for (const { id } of environments) if (await hasExpired(db, id, before)) return true;
  return false;
}

function sendWarning(
  transaction: Transaction,
  notifications: NotificationService,
  organizationId: string,
  warning: RetentionWarning,
): Promise<void> {
  const { kind, days, firstDeletionAt } = warning;
  const params = { organizationId, days, firstDeletionAt: formatUtc(firstDeletionAt) };
  if (kind === 'announcement')
    return notifications.notifyOwners(transaction, {
      organizationId,
      template: 'retention-notice',
      params,
      // By day, so that reverting and repeating a change on the same day sends one email.
      dedupeKey: `retention-notice/${organizationId}/${days}/${firstDeletionAt.toISOString().slice(0, 10)}`,
    });
  return notifications.notifyOwners(transaction, {
    organizationId,
    template: 'retention-final-notice',
    params,
    dedupeKey: `retention-final-notice/${organizationId}/${days}/${firstDeletionAt.toISOString()}`,
  });
}

/** Sent once a month, by the first run that finds messages about to be deleted. */
async function sendMonthlyReminder(
  transaction: Transaction,
  notifications: NotificationService,
  policy: RetentionPolicy,
  at: Date,
): Promise<boolean> {
  const { organizationId, appliedDays } = policy;
  if (!isDeleting(policy) || !isReminderDue(policy, at)) return false;
  const before = new Date(getCutoff(policy, at).getTime() + REMINDER_LEAD_MS);
  if (!(await hasMessagesBefore(transaction.db, organizationId, before))) return false;
  await notifications.notifyOwners(transaction, {
    organizationId,
    template: 'retention-reminder',
    params: { organizationId, days: appliedDays, before: formatUtc(before) },
    dedupeKey: `retention-reminder/${organizationId}/${toYearMonth(at)}`,
  });
  policy.remindedAt = at;
  return true;
}
