import type { FastifyInstance } from 'fastify';
import type { ApiCallMeter } from '../../domain/usage/api-call-meter.ts';
import type { RefusedSends } from './refused-sends.ts';

/**
 * Counts every authenticated call after its response, except those rejected with 429. Pages for people are no calls, and
 * staff do not use up an organization's limit. At a hard limit, rejects all calls except those that show or change it.
 */
export function installUsageMetering(
  app: FastifyInstance,
  { meter, refusedSends }: { meter: ApiCallMeter; refusedSends: RefusedSends },
): void {
  app.addHook('onRequest', async (request) => {
    const { scope, routeOptions } = request;
    const { exemptFromUsageLimit, isUncounted } = routeOptions.config;
    if (!scope || scope.sendRefusal || scope.impersonation || exemptFromUsageLimit || isUncounted) return;
    const refusal = meter.findRefusal(scope.organizationId);
    if (refusal) refusedSends.refuse(request, refusal, 'rate_limited');
  });
  app.addHook('onResponse', async ({ scope, routeOptions }, reply) => {
    const { page, isUncounted } = routeOptions.config;
    if (!scope || scope.impersonation || page || isUncounted || reply.statusCode === 429) return;
    meter.count(scope.organizationId);
  });
  app.addHook('onClose', () => meter.close());
}
