import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  SETTLE_HELD_WORK,
  settleLimitsWorkflowId,
} from '../../workflows/suspensions/settle-held-work.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { AuditEvent } from '../audit/record-audit.ts';
import type { Tier } from '../organizations/tier.ts';
import { changeTier, type LimitChange, type TierChange } from '../usage/change-limits.ts';

/**
 * Changes the tier in the caller's transaction, and starts the release of work that the old limits held. For everything that
 * grants a tier, such as staff and billing.
 *
 * @param record writes the change to the organization's log, so that no tier changes without an entry.
 * @returns null if the organization already has the tier.
 * @throws AppError `not_found`.
 */
export async function applyTier(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  { record, ...change }: LimitChange & { tier: Tier; record(event: AuditEvent): Promise<void> },
): Promise<TierChange | null> {
  const { organizationId, tier } = change;
  const changed = await changeTier(transaction.db, change);
  if (!changed) return null;
  await record({
    action: 'organization.tier_changed',
    resourceType: 'organization',
    resourceId: organizationId,
    details: { from: changed.from, to: tier },
  });
  startLimitRelease(transaction, outbox, { ...change, eventId: changed.eventId });
  return changed;
}

/** Starts the run that releases work that the former limits of the organization held. */
export function startLimitRelease(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  { organizationId, eventId }: { organizationId: string; eventId: string },
): void {
  const start: StartCommand = {
    workflowType: SETTLE_HELD_WORK,
    workflowId: settleLimitsWorkflowId(eventId),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.urgent, fairnessKey: organizationId },
    input: { organizationId, suspension: null },
    searchAttributes: {
      OrgId: organizationId,
      ResourceId: organizationId,
      RelatedId: eventId,
      Stage: 'releasing',
    },
    summary: `Limits of ${organizationId} changed`,
  };
  outbox.enqueue(transaction, organizationId, { start });
}
