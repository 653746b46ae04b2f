import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';

export type ProbedEndpointRow = Pick<
  WebhookEndpoint,
  'id' | 'organizationId' | 'disabled' | 'deletedAt' | 'consecutiveFailures' | 'holdingSince' | 'probeEpisode'
>;

/** Locks the endpoint until the transaction ends. Events and attempts that only refer to it do not wait. */
export async function lockProbedEndpoint(em: EntityManager, id: string): Promise<ProbedEndpointRow | null> {
  const [row] = await em.execute<SerializedRow<ProbedEndpointRow>[]>(
    sql`select id, org_id as "organizationId", disabled, deleted_at as "deletedAt",
       consecutive_failures as "consecutiveFailures", holding_since as "holdingSince",
       probe_episode as "probeEpisode"
     from webhook_endpoints where id = ${id} for no key update`,
  );
  return row
    ? { ...row, deletedAt: parseTimestamp(row.deletedAt), holdingSince: parseTimestamp(row.holdingSince) }
    : null;
}
