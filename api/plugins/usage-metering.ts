import type { FastifyInstance } from 'fastify';
import type { ApiCallMeter } from '../../domain/usage/api-call-meter.ts';

/**
 * Counts every call with a credential, once it is answered; one that was refused for a limit (429) is none. Behind a
 * hard limit calls are refused, but for those that show and mend it.
 */
export function installUsageMetering(app: FastifyInstance, { meter }: { meter: ApiCallMeter }): void {
  app.addHook('onRequest', async ({ scope, routeOptions }) => {
    if (!scope || routeOptions.config.exemptFromUsageLimit) return;
    const refusal = meter.findRefusal(scope.organizationId);
    if (refusal) throw refusal;
  });
  app.addHook('onResponse', async ({ scope }, reply) => {
    if (scope && reply.statusCode !== 429) meter.count(scope.organizationId);
  });
  app.addHook('onClose', () => meter.close());
}
