import type { EntityManager } from '@mikro-orm/postgresql';
import { MetricDeltaEntity } from './metric-delta.entity.ts';
import { hourOf } from './metric-range.ts';

/** Counts a send that was refused at the call and left no message; goes with the caller's flush. */
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
      hour: hourOf(at),
      rejected: 1,
    }),
  );
}
