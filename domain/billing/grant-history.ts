import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import type { Tier } from '../organizations/tier.ts';
import type { GrantHistory, Span } from './meter-windows.ts';
import type { MeteredCounter } from './metered-counters.ts';

interface LedgerRow {
  organizationId: string;
  kind: 'tier_changed' | 'override_set' | 'override_removed';
  counter: string | null;
  from: Tier | null;
  to: Tier | null;
  expiresAt: Date | null;
  at: Date;
}

interface OverrideRow {
  organizationId: string;
  counter: string;
  createdAt: Date;
  expiresAt: Date | null;
}

const BEGINNING = new Date(0);

/** Reads what organizations were granted since a time. Returns a function that finds the history of one counter. */
export async function readGrantHistories(
  em: EntityManager,
  organizationIds: readonly string[],
  since: Date,
): Promise<(organizationId: string, counter: MeteredCounter) => GrantHistory> {
  const ids = [...organizationIds];
  const tiers = await em.execute<{ id: string; tier: Tier }[]>(
    sql`select id, tier from organizations where id in (${ids})`,
  );
  const ledger = toTimes(
    await em.execute<SerializedRow<LedgerRow>[]>(sql`
      select org_id as "organizationId", kind, counter, data ->> 'from' as "from", data ->> 'to' as "to",
        data ->> 'expires_at' as "expiresAt", at
      from usage_events
      where org_id in (${ids}) and (kind = 'tier_changed' and at >= ${since} or kind in ('override_set', 'override_removed'))
      order by at, id`),
  );
  const overrides = await em.execute<SerializedRow<OverrideRow>[]>(sql`
    select org_id as "organizationId", resource as counter, created_at as "createdAt", expires_at as "expiresAt"
    from limit_overrides where org_id in (${ids})`);
  const suspensions = await em.execute<{ organizationId: string; from: string; until: string | null }[]>(sql`
    select org_id as "organizationId", created_at as "from", lifted_at as "until" from suspensions
    where org_id in (${ids}) and target_id = org_id and (lifted_at is null or lifted_at >= ${since})`);

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
          .map(({ createdAt, expiresAt }) => toSpan(createdAt, expiresAt)),
        ...formerOverrides(own.filter((entry) => entry.counter === counter)),
      ],
      suspensions: suspensions
        .filter((row) => row.organizationId === organizationId)
        .map(({ from, until }) => toSpan(from, until)),
    };
  };
}

/** Overrides that were replaced or removed, by what the ledger says. The one in force has a row of its own. */
function formerOverrides(entries: readonly LedgerRow[]): Span[] {
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

const toSpan = (from: string, until: string | null): Span => ({
  from: new Date(from),
  until: until === null ? null : new Date(until),
});

const toTimes = (rows: SerializedRow<LedgerRow>[]): LedgerRow[] =>
  rows.map((row) => ({ ...row, at: new Date(row.at), expiresAt: parseTimestamp(row.expiresAt) }));
