import type { EntityManager } from '@mikro-orm/postgresql';
import { type EffectiveLimit, effectiveLimit, roomWithin } from './effective-limit.ts';
import { planLimitReached } from './limit-exceeded.ts';
import { FACTS, type FactsRow, factsOf, readFacts } from './limit-facts.ts';

/** Things there may be only so many of at once. A deleted inbox is none. */
const COUNT_OF = {
  inboxes: 'select count(*)::int from inboxes c where c.org_id = o.id and c.deleted_at is null',
  domains: 'select count(*)::int from domains c where c.org_id = o.id',
};
export type CappedThing = keyof typeof COUNT_OF;

export interface Capped {
  thing: CappedThing;
  current: number;
  limit: EffectiveLimit;
}

export async function readCapped(em: EntityManager, organizationId: string): Promise<Capped[]> {
  const things = Object.keys(COUNT_OF) as CappedThing[];
  const rows = await em.execute<(FactsRow & { thing: CappedThing; current: number })[]>(
    things
      .map(
        (thing) => `select '${thing}' as thing, (${COUNT_OF[thing]}) as current, ${FACTS}
          from organizations o ${factsOf(`'${thing}'`)} where o.id = ?`,
      )
      .join(' union all '),
    things.map(() => organizationId),
  );
  return rows.map(({ thing, current, ...row }) => ({
    thing,
    current,
    limit: effectiveLimit(thing, readFacts(row)),
  }));
}

/**
 * Belongs before the row is made, in its transaction: those who make one at once wait for each other where something may
 * be refused.
 *
 * @throws AppError `plan_limit_reached`.
 */
export async function requireRoomFor(
  em: EntityManager,
  organizationId: string,
  thing: CappedThing,
): Promise<void> {
  const [row] = await em.execute<FactsRow[]>(
    `select ${FACTS} from organizations o ${factsOf(`'${thing}'`)} where o.id = ?`,
    [organizationId],
  );
  if (!row) return;
  const limit = effectiveLimit(thing, readFacts(row));
  if (roomWithin(limit, 0) === null) return;
  await em.execute('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    JSON.stringify(['cap', organizationId, thing]),
  ]);
  // A statement of its own, so that it sees what was made while the lock was waited for.
  const [counted] = await em.execute<{ current: number }[]>(
    `select (${COUNT_OF[thing]}) as current from organizations o where o.id = ?`,
    [organizationId],
  );
  if (roomWithin(limit, counted?.current ?? 0) === 0) throw planLimitReached(thing, limit);
}
