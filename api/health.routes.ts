import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { AppError } from '../platform/errors.ts';
import type { QueueAge, QueueAges } from '../platform/outbox/queue-ages.ts';
import { enumOf, problems, strictObject } from './schemas.ts';

/** Rejects if the dependency is unavailable. */
export type Probe = () => Promise<void>;

export interface HealthOptions {
  probes: { database: Probe; temporal: Probe };
  queueAges: QueueAges;
}

/** Longer waits than this are reported as `degraded`. A healthy queue waits for less than a second. */
const DEGRADED_AFTER_SECONDS = 30;

const Live = strictObject({ status: enumOf(['ok']) }, { description: 'The process is running.' });
const WaitingSeconds = Type.Union([Type.Number({ minimum: 0 }), Type.Null()]);
const Ready = strictObject(
  {
    status: enumOf(['ok', 'degraded']),
    checks: Type.Record(Type.String({ maxLength: 64 }), enumOf(['ok'])),
    queues: Type.Record(
      Type.String({ maxLength: 64 }),
      strictObject({ outbox_seconds: WaitingSeconds, temporal_seconds: WaitingSeconds }),
      {
        description:
          'Age of the oldest waiting start of each task queue, in seconds: before Temporal has accepted it, and before a worker has taken it. 0 if none waits, null if unknown.',
      },
    ),
  },
  {
    description: `All dependencies are available. \`degraded\`: work of a queue has waited for more than ${DEGRADED_AFTER_SECONDS} seconds; requests are served as usual.`,
  },
);

/** For orchestrators: `live` reports that the process responds, `ready` that its dependencies are available and whether work waits. */
export const healthRoutes =
  ({ probes, queueAges }: HealthOptions): FastifyPluginCallbackTypebox =>
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
        const ages = Object.entries(await queueAges.read());
        return {
          status: ages.some(([, age]) => isLate(age)) ? ('degraded' as const) : ('ok' as const),
          checks: Object.fromEntries(names.map((name) => [name, 'ok' as const])),
          queues: Object.fromEntries(
            ages.map(([queue, { outboxSeconds, temporalSeconds }]) => [
              queue,
              { outbox_seconds: outboxSeconds, temporal_seconds: temporalSeconds },
            ]),
          ),
        };
      },
    );
    done();
  };

const isLate = ({ outboxSeconds, temporalSeconds }: QueueAge): boolean =>
  Math.max(outboxSeconds ?? 0, temporalSeconds ?? 0) > DEGRADED_AFTER_SECONDS;
