import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Tier } from '../organizations/tier.ts';
import type { GrantHistory, Span } from './meter-windows.ts';
import type { MeteredCounter } from './metered-counters.ts';

const BEGINNING = new Date(0);

/** Reads the limits granted to organizations since a time. Returns a function that finds the history of one counter. */
export async function readGrantHistories(
  db: Db,
  organizationIds: readonly string[],
  since: Date,
): Promise<(organizationId: string, counter: MeteredCounter) => GrantHistory> {
  const ids = anyOf(organizationIds);
  const tiers = await db.selectFrom('organizations').select(['id', 'tier']).where('id', '=', ids).execute();
  const ledger = await db
    .selectFrom('usage_events')
    .select([
      'org_id as organizationId',
      'kind',
      'counter',
      sql<Tier | null>`data ->> 'from'`.as('from'),
      sql<Tier | null>`data ->> 'to'`.as('to'),
      sql<Date | null>`(data ->> 'expires_at')::timestamptz`.as('expiresAt'),
      'at',
    ])
    .where('org_id', '=', ids)
    .where((eb) =>
      eb.or([
        eb.and([eb('kind', '=', 'tier_changed'), eb('at', '>=', since)]),
        eb('kind', '=', anyOf(['override_set', 'override_removed'] as const)),
      ]),
    )
    .orderBy('at')
    .orderBy('id')
    .execute();
  const overrides = await db
    .selectFrom('limit_overrides')
    .select(['org_id as organizationId', 'resource as counter', 'created_at as from', 'expires_at as until'])
    .where('org_id', '=', ids)
    .execute();
  const suspensions = await db
    .selectFrom('suspensions')
    .select(['org_id as organizationId', 'created_at as from', 'lifted_at as until'])
    .where('org_id', '=', ids)
    .whereRef('target_id', '=', 'org_id')
    .where((eb) => eb.or([eb('lifted_at', 'is', null), eb('lifted_at', '>=', since)]))
    .execute();

  return (organizationId, counter) => {
    const own = ledger.filter((entry) => entry.organizationId === organizationId);
    return {
      counter,
      tier: tiers.find(({ id }) => id === organizationId)?.tier ?? 'free',
      tierChanges: own.flatMap(({ kind, at, from, to }) =>
        kind === 'tier_changed' && from && to ? [{ at, from, to }] : [],
      ),
      overrides: [
        ...overrides
          .filter((row) => row.organizationId === organizationId && row.counter === counter)
          .map(toSpan),
        ...formerOverrides(own.filter((entry) => entry.counter === counter)),
      ],
      suspensions: suspensions.filter((row) => row.organizationId === organizationId).map(toSpan),
    };
  };
}

interface OverrideEntry {
  kind: string;
  at: Date;
  expiresAt: Date | null;
}

/** Finds overrides that were replaced or removed, according to the ledger. The present override has its own row. */
function formerOverrides(entries: readonly OverrideEntry[]): Span[] {
  const spans: Span[] = [];
  let current: Span | undefined;
  for (const [index, { kind, at, expiresAt }] of entries.entries()) {
    if (current) spans.push({ ...current, until: earlier(current.until, at) });
    // Set before the ledger's first entry.
    else if (kind === 'override_removed' && index === 0) spans.push({ from: BEGINNING, until: at });
    current = kind === 'override_set' ? { from: at, until: expiresAt } : undefined;
  }
  return current ? [...spans, current] : spans;
}

const earlier = (until: Date | null, at: Date): Date => (until !== null && until < at ? until : at);

const toSpan = ({ from, until }: Span): Span => ({ from, until });
