import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { asPeopleRead } from '../notifications/as-people-read.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { hasExpired } from './expired-batch.ts';
import {
  DAY_MS,
  deletesNow,
  holdRetention,
  isReminderDue,
  monthOf,
  postponeRetention,
  reviewRetention,
  type Warning,
} from './retention-plan.ts';
import { type RetentionPolicy, RetentionPolicyEntity } from './retention-policy.entity.ts';
import { lockPolicy } from './retention-policy.service.ts';
import { startOfRetention } from './retention-start.ts';

export interface RetentionReview {
  /** What was received or sent before it goes now; empty where nothing does. */
  deletesBefore: string | null;
  /** Mails that were written. */
  warnings: number;
}

/** What the lifecycle asks for. Every one may run again at any time. */
export interface RetentionService {
  /** Writes the mails that are due, lets begin what was announced long enough, and says what is to be deleted now. */
  review(organizationId: string): Promise<RetentionReview>;
  /** @returns what became of it, for the Temporal UI. */
  postpone(organizationId: string, days: number): Promise<string>;
  /**
   * Starts the day's run of every organization that has something to do.
   *
   * @param progressed called after each page.
   * @returns how many.
   */
  startDue(progressed: () => void): Promise<number>;
}

export interface RetentionServiceOptions {
  database: Database;
  outbox: Pick<Outbox, 'enqueue' | 'drain'>;
  notifications: NotificationService;
  now?: () => Date;
}

/** Policies of one page, and runs started in one transaction. */
const PAGE = 200;
/** A reminder is written where mail goes within this time. */
const REMINDER_AHEAD_MS = 31 * DAY_MS;

export function createRetentionService({
  database,
  outbox,
  notifications,
  now = () => new Date(),
}: RetentionServiceOptions): RetentionService {
  return {
    review: (organizationId) =>
      database.systemTransaction(async (transaction) => {
        const policy = await lockPolicy(transaction.em, organizationId);
        if (!policy) return NOTHING_TO_DO;
        const at = now();
        if (!(await isActive(transaction, organizationId))) {
          holdRetention(policy, at);
          return NOTHING_TO_DO;
        }
        const warnings = reviewRetention(policy, at);
        for (const warning of warnings) await warn(transaction, notifications, organizationId, warning);
        const reminded = await remindMonthly(transaction, notifications, policy, at);
        return {
          deletesBefore: deletesNow(policy) ? beforeOf(policy, at).toISOString() : null,
          warnings: warnings.length + (reminded ? 1 : 0),
        };
      }),

    postpone: (organizationId, days) =>
      database.systemTransaction(async ({ em }) => {
        const policy = await lockPolicy(em, organizationId);
        const postponed = policy !== null && postponeRetention(policy, days, now());
        return postponed ? `postponed until ${policy.postponedUntil?.toISOString()}` : 'nothing to postpone';
      }),

    async startDue(progressed) {
      const day = now().toISOString().slice(0, 10);
      let started = 0;
      for (let after: string | null = ''; after !== null; ) {
        const page: string = after;
        after = await database.systemTransaction(async (transaction) => {
          const policies = await readPage(transaction, page);
          for (const policy of policies) {
            if (!(await hasSomethingToDo(transaction, policy, now()))) continue;
            const { organizationId } = policy;
            outbox.enqueue(transaction, organizationId, { start: startOfRetention(organizationId, day) });
            started += 1;
          }
          return policies.length < PAGE ? null : (policies.at(-1)?.organizationId ?? null);
        });
        // Temporal sets the pace: the next page waits until it has taken this one.
        await outbox.drain();
        progressed();
      }
      return started;
    },
  };
}

const NOTHING_TO_DO: RetentionReview = { deletesBefore: null, warnings: 0 };

/** Of a suspended organization nothing is deleted: it could neither postpone it nor keep its mail longer. */
async function isActive({ em }: Transaction, organizationId: string): Promise<boolean> {
  return (await em.count(OrganizationEntity, { id: organizationId, status: 'active' })) > 0;
}

function beforeOf({ appliedDays }: Pick<RetentionPolicy, 'appliedDays'>, at: Date): Date {
  return new Date(at.getTime() - appliedDays * DAY_MS);
}

function readPage({ em }: Transaction, after: string): Promise<RetentionPolicy[]> {
  return em.find(
    RetentionPolicyEntity,
    { organizationId: { $gt: after } },
    { orderBy: { organizationId: 'asc' }, limit: PAGE },
  );
}

async function hasSomethingToDo(
  transaction: Transaction,
  policy: RetentionPolicy,
  at: Date,
): Promise<boolean> {
  if (policy.steps.length > 0 || policy.postponedUntil) return true;
  if (!deletesNow(policy)) return false;
  if (!(await isActive(transaction, policy.organizationId))) return true;
  const aheadMs = isReminderDue(policy, at) ? REMINDER_AHEAD_MS : 0;
  return hasMailBefore(
    transaction,
    policy.organizationId,
    new Date(beforeOf(policy, at).getTime() + aheadMs),
  );
}

async function hasMailBefore({ em }: Transaction, organizationId: string, before: Date): Promise<boolean> {
  const environments = await em.find(EnvironmentEntity, { organizationId }, { fields: ['id'] });
  for (const { id } of environments) if (await hasExpired(em, id, before)) return true;
  return false;
}

function warn(
  transaction: Transaction,
  notifications: NotificationService,
  organizationId: string,
  warning: Warning,
): Promise<void> {
  const { kind, days, firstDeletionAt } = warning;
  const params = { organizationId, days, firstDeletionAt: asPeopleRead(firstDeletionAt) };
  if (kind === 'set')
    return notifications.notifyOwners(transaction, {
      organizationId,
      template: 'retention-set',
      params,
      // A setting that is taken back and made again on the same day is what the owners were told of.
      dedupeKey: `retention-set/${organizationId}/${days}/${firstDeletionAt.toISOString().slice(0, 10)}`,
    });
  return notifications.notifyOwners(transaction, {
    organizationId,
    template: 'retention-tomorrow',
    params,
    dedupeKey: `retention-tomorrow/${organizationId}/${days}/${firstDeletionAt.toISOString()}`,
  });
}

/** Once a month, before the month's first run that finds mail to go. */
async function remindMonthly(
  transaction: Transaction,
  notifications: NotificationService,
  policy: RetentionPolicy,
  at: Date,
): Promise<boolean> {
  const { organizationId, appliedDays } = policy;
  if (!deletesNow(policy) || !isReminderDue(policy, at)) return false;
  const before = new Date(beforeOf(policy, at).getTime() + REMINDER_AHEAD_MS);
  if (!(await hasMailBefore(transaction, organizationId, before))) return false;
  await notifications.notifyOwners(transaction, {
    organizationId,
    template: 'retention-reminder',
    params: { organizationId, days: appliedDays, before: asPeopleRead(before) },
    dedupeKey: `retention-reminder/${organizationId}/${monthOf(at)}`,
  });
  policy.remindedAt = at;
  return true;
}
