import type { EntityManager } from '@mikro-orm/postgresql';
import { MetricDeltaEntity } from './metric-delta.entity.ts';
import { startOfHour } from './metric-range.ts';

/** Counts a send that was refused before a message was created. Written with the caller's flush. */
export function countRefusedSend(
  em: EntityManager,
  inbox: { id: string; organizationId: string; environmentId: string },
  at: Date,
): void {
  const { id: inboxId, organizationId, environmentId } = inbox;
  em.persist(
    em.create(MetricDeltaEntity, {
      organizationId,
      environmentId,
      inboxId,
      hour: startOfHour(at),
      rejected: 1,
    }),
  );
}
