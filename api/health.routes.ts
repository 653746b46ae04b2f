import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { Dependencies } from '../platform/dependencies.ts';
import { AppError } from '../platform/errors.ts';
import type { QueueAge, QueueAges } from '../platform/outbox/queue-ages.ts';
import { enumOf, problems, strictObject } from './schemas.ts';

export interface HealthOptions {
  dependencies: Dependencies;
  queueAges: QueueAges;
}

/** Longer waits than this are reported as `degraded`. A healthy queue waits for less than a second. */
const DEGRADED_AFTER_SECONDS = 30;
const QUEUE_AGES_TIMEOUT_MS = 2_500;

const Live = strictObject({ status: enumOf(['ok']) }, { description: 'The process is running.' });
const WaitingSeconds = Type.Union([Type.Number({ minimum: 0 }), Type.Null()]);
const DependencyState = enumOf(['ok', 'unavailable']);
const Ready = strictObject(
  {
    status: enumOf(['ok', 'degraded']),
    checks: strictObject({
      database: DependencyState,
      temporal: DependencyState,
      storage: DependencyState,
    }),
    queues: Type.Record(
      Type.String({ maxLength: 64 }),
      strictObject({ outbox_seconds: WaitingSeconds, temporal_seconds: WaitingSeconds }),
      {
        description:
          'Age of the oldest waiting start of each task queue, in seconds: before Temporal has accepted it, and before a worker has taken it. 0 if none waits, null if unknown; empty if the database did not answer in time.',
      },
    ),
  },
  {
    description: `The API serves requests. \`degraded\`: Temporal or storage is unavailable, or work of a queue has waited for more than ${DEGRADED_AFTER_SECONDS} seconds. Without Temporal, changes and sends are accepted and start when it is back; without storage, requests with attachments and raw messages fail.`,
  },
);

/** For orchestrators: `live` reports that the process responds, `ready` that it can serve, what is unavailable and whether work waits. */
export const healthRoutes =
  ({ dependencies, queueAges }: HealthOptions): FastifyPluginCallbackTypebox =>
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
          response: { 200: Live, ...problems() },
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
        const checks = await dependencies.read();
        if (checks.database !== 'ok') {
          throw new AppError('unavailable', {
            detail: 'Not reachable: database.',
            fix: 'Wait until the dependency is available again.',
          });
        }
        const ages = Object.entries(await readWithinTimeout(queueAges));
        const isDegraded =
          Object.values(checks).includes('unavailable') || ages.some(([, age]) => isLate(age));
        return {
          status: isDegraded ? ('degraded' as const) : ('ok' as const),
          checks,
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

/** A database that accepted the connection may still not answer: a probe needs its answer in time. Empty if there is none. */
async function readWithinTimeout(queueAges: QueueAges): Promise<Record<string, QueueAge>> {
  const { promise, resolve } = Promise.withResolvers<Record<string, QueueAge>>();
  const timer = setTimeout(() => resolve({}), QUEUE_AGES_TIMEOUT_MS);
  return Promise.race([queueAges.read(), promise]).finally(() => clearTimeout(timer));
}

const isLate = ({ outboxSeconds, temporalSeconds }: QueueAge): boolean =>
  Math.max(outboxSeconds ?? 0, temporalSeconds ?? 0) > DEGRADED_AFTER_SECONDS;
