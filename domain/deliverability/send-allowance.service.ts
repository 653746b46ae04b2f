import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Scope } from '../identity/scope.ts';
import { findPolicies } from '../policies/find-policies.ts';
import { type EffectiveLimit, remainingQuota } from '../usage/effective-limit.ts';
import { endOfDay, monthOf } from '../usage/periods.ts';
import { readUsageStatuses } from '../usage/usage-status.ts';
import {
  type DailyAllowance,
  readInboxAllowance,
  readSharedDomainAllowance,
  type SharedDomainLimit,
} from './daily-allowances.ts';

/** What a credential may still send. */
export interface SendAllowance {
  /** Nothing that is sent leaves the service. */
  isSandbox: boolean;
  today: {
    /** Recipients of the organization on the shared domain; null: no such cap. */
    sharedDomain: DailyAllowance | null;
    /** Messages of each inbox; `remaining` is null for a credential of several inboxes. Null: no such cap. */
    inbox: { limit: number; remaining: number | null } | null;
    resetsAt: Date;
  };
  /** `remaining` is null if nothing is refused. */
  month: { limit: EffectiveLimit; remaining: number | null; resetsAt: Date };
}

export type SendAllowanceService = ReturnType<typeof createSendAllowanceService>;

export function createSendAllowanceService({
  database,
  sharedDomainLimit,
  now = () => new Date(),
}: {
  database: Database;
  sharedDomainLimit?: SharedDomainLimit | undefined;
  now?: () => Date;
}) {
  return {
    /** Reads what the credential may still send, without counting anything. */
    get: (scope: Scope): Promise<SendAllowance> =>
      database.read(scope, async ({ db }) => {
        const at = now();
        const { organizationId } = scope;
        const isSandbox = await isInSandbox(db, scope);
        const [messages] = await readUsageStatuses(db, {
          organizationIds: [organizationId],
          counters: ['messages_sent'],
          at,
        });
        if (!messages) throw new Error(`The organization ${organizationId} does not exist`);
        const appliesCap = !isSandbox && (await usesSharedDomain(db, scope));
        return {
          isSandbox,
          today: {
            sharedDomain:
              sharedDomainLimit && appliesCap
                ? await readSharedDomainAllowance(db, organizationId, { ...sharedDomainLimit, now: () => at })
                : null,
            inbox: await readInboxCap(db, scope, at),
            resetsAt: endOfDay(at),
          },
          month: {
            limit: messages.limit,
            remaining: remainingQuota(messages.limit, messages.current),
            resetsAt: monthOf(at).end,
          },
        };
      }),
  };
}

async function isInSandbox(db: Db, { environmentId }: Scope): Promise<boolean> {
  const environment = await db
    .selectFrom('environments')
    .select('kind')
    .where('id', '=', environmentId)
    .executeTakeFirst();
  return environment?.kind === 'sandbox';
}

/** Whether the credential can send from the shared domain. A credential of several inboxes can. */
async function usesSharedDomain(db: Db, { inboxId }: Scope): Promise<boolean> {
  if (inboxId === undefined) return true;
  const inbox = await db
    .selectFrom('inboxes')
    .select('domain_id as domainId')
    .where('id', '=', inboxId)
    .executeTakeFirst();
  return inbox?.domainId === null;
}

async function readInboxCap(
  db: Db,
  { organizationId, inboxId }: Scope,
  at: Date,
): Promise<SendAllowance['today']['inbox']> {
  const { dailySendCapPerInbox: cap } = await findPolicies(db, organizationId);
  if (cap === null) return null;
  return inboxId === undefined ? { limit: cap, remaining: null } : readInboxAllowance(db, inboxId, cap, at);
}
