import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { HELD_DETAIL, IS_REINSTATED, isOfOrganization } from '../outbound/held-sends.ts';
import { IS_SUSPENDED_FOR_ABUSE } from '../suspensions/abuse-suspension.ts';
import type { Draft } from './draft.entity.ts';
import { buildScheduledSendStart } from './draft-schedule.ts';

type HeldDraft = Pick<
  Draft,
  'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'scheduleVersion' | 'version'
> & { sendAt: string };

const BATCH_SIZE = 200;

/**
 * Starts the runs of held drafts whose suspension has ended; like `releaseHeldSends`.
 *
 * @param organizationId default: all organizations.
 * @returns the number of released drafts, at most one batch.
 */
export async function releaseHeldDrafts(
  transaction: Transaction,
  outbox: Outbox,
  organizationId?: string,
): Promise<number> {
  const released = await transaction.em.execute<HeldDraft[]>(sql`
    update drafts set send_error = null, updated_at = now()
    where id = any(array(
      select held.id from drafts held
      where held.send_status = 'scheduled' and held.send_error = ${HELD_DETAIL}
        and ${isOfOrganization(organizationId)} and ${IS_REINSTATED}
      order by held.send_at limit ${BATCH_SIZE} for update of held skip locked))
    returning id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId",
      schedule_version as "scheduleVersion", version, send_at as "sendAt"`);
  for (const draft of released)
    outbox.enqueue(transaction, draft.organizationId, {
      start: buildScheduledSendStart(draft, new Date(draft.sendAt)),
    });
  return released.length;
}

/** The reconciler's source of held drafts. @returns the number of released drafts. */
export async function releaseAllHeldDrafts(database: Database, outbox: Outbox): Promise<number> {
  for (let total = 0; ; ) {
    const released = await database.systemTransaction((transaction) =>
      releaseHeldDrafts(transaction, outbox),
    );
    total += released;
    if (released < BATCH_SIZE) return total;
  }
}

/** Due drafts, held or not, that a suspension for abuse affects: at most one batch, the oldest first. */
export function findDraftsSuspendedForAbuse(
  em: EntityManager,
  organizationId: string,
): Promise<Pick<Draft, 'id' | 'scheduleVersion'>[]> {
  return em.execute(sql`
    select d.id, d.schedule_version as "scheduleVersion"
    from drafts d join inboxes i on i.id = d.inbox_id join environments e on e.id = i.env_id
      join organizations o on o.id = i.org_id
    where d.send_status = 'scheduled' and d.send_at <= now() and d.org_id = ${organizationId}
      and ${IS_SUSPENDED_FOR_ABUSE}
    order by d.send_at limit ${BATCH_SIZE}`);
}
