import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { AppError } from '../platform/errors.ts';
import { enumOf, problems, strictObject } from './schemas.ts';

/** Rejects if the dependency is unavailable. */
export type Probe = () => Promise<void>;

export interface HealthOptions {
  probes: { database: Probe; temporal: Probe };
}

const Live = strictObject({ status: enumOf(['ok']) }, { description: 'The process is running.' });
const Ready = strictObject(
  {
    status: enumOf(['ok']),
    checks: Type.Record(Type.String({ maxLength: 64 }), enumOf(['ok'])),
  },
  { description: 'All dependencies are available.' },
);

/** For orchestrators: `live` reports that the process responds, `ready` that its dependencies are available. */
export const healthRoutes =
  ({ probes }: HealthOptions): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/health/live',
      {
        config: { public: 'unlimited' },
        schema: {
          operationId: 'health.live',
          summary: 'Check liveness',
          tags: ['Health'],
          security: [],
          response: { 200: Live },
        },
      },
      async () => ({ status: 'ok' as const }),
    );

    app.get(
      '/health/ready',
      {
        config: { public: 'unlimited' },
        schema: {
          operationId: 'health.ready',
          summary: 'Check readiness',
          tags: ['Health'],
          security: [],
          response: { 200: Ready, ...problems(503) },
        },
      },
      async () => {
        const names = Object.keys(probes) as (keyof typeof probes)[];
        const outcomes = await Promise.allSettled(names.map((name) => probes[name]()));
        const down = names.filter((_name, index) => outcomes[index]?.status === 'rejected');
        if (down.length > 0) {
          throw new AppError('unavailable', {
            detail: `Not reachable: ${down.join(', ')}.`,
            fix: 'Wait until the dependency is available again.',
          });
        }
        return {
          status: 'ok' as const,
          checks: Object.fromEntries(names.map((name) => [name, 'ok' as const])),
        };
      },
    );
    done();
  };
