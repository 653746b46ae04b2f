import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { SendAllowanceService } from '../../domain/deliverability/send-allowance.service.ts';
import type { Config } from '../../platform/config.ts';
import { problems, ref } from '../schemas.ts';
import { CredentialRecord, presentCredential } from './me.schemas.ts';

export const meRoutes =
  ({
    sendAllowances,
    config,
  }: {
    sendAllowances: SendAllowanceService;
    config: Pick<Config, 'RATE_LIMIT_PER_SECOND' | 'RATE_LIMIT_BURST'>;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const limit = { perSecond: config.RATE_LIMIT_PER_SECOND, burst: config.RATE_LIMIT_BURST };
    app.get(
      '/me',
      {
        config: { credential: 'any', isUncounted: true },
        schema: {
          operationId: 'me.get',
          summary: 'Get what the credential of the request may do',
          description:
            'What the key or session is, what it reaches, its permissions, and what may still be sent today and this month. Needs no permission, works while suspended and at a limit of api_calls, and is not counted as a call.',
          tags: ['API keys'],
          response: { 200: ref(CredentialRecord), ...problems() },
        },
      },
      async ({ scope, person, suspension, accessEndsAt: expiresAt }) =>
        presentCredential(
          { scope, person, suspension, expiresAt },
          limit,
          scope && (await sendAllowances.get(scope)),
        ),
    );
    done();
  };
