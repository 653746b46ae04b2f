import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import { buildProbeStart, type ProbedEndpoint } from './probe-start.ts';

/** Endpoints whose deliveries wait for a probe. If an operator stopped the run, it starts again. */
export function overdueProbes(database: Database): OverdueSource {
  return {
    name: 'webhookProbes',
    async take(limit) {
      const endpoints = await takeOverdue<ProbedEndpoint>(database, {
        table: 'webhook_endpoints',
        overdue: `holding_since < now() - interval '2 minutes' and not disabled and deleted_at is null`,
        columns: `id, org_id as "organizationId", env_id as "environmentId", probe_episode as "probeEpisode"`,
        limit,
        recheckDelay: '2 minutes',
      });
      return endpoints.map((endpoint) => ({
        start: buildProbeStart(endpoint),
        whenStopped: 'restart' as const,
      }));
    },
  };
}
