import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { type HealthService, MAX_PROCESSES } from '../../domain/monitoring/health.service.ts';
import { DEPENDENCIES, type Dependencies } from '../../platform/dependencies.ts';
import type { QueueAges } from '../../platform/outbox/queue-ages.ts';
import {
  enumOf,
  nullableText,
  nullableTimestamp,
  problems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

const Seconds = Type.Union([Type.Number({ minimum: 0 }), Type.Null()]);
const orUnknown = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) =>
  Type.Union([schema, Type.Null()]);

export const ServiceHealthRecord = resource(
  'service_health',
  {
    dependencies: Type.Array(
      strictObject({
        name: enumOf(DEPENDENCIES),
        status: enumOf(['ok', 'unavailable']),
        latency_ms: Type.Number({ minimum: 0, description: 'Of the last look, at most two seconds ago.' }),
      }),
      { maxItems: DEPENDENCIES.length, description: 'As this API process reaches them.' },
    ),
    queues: Type.Array(strictObject({ name: text(64), outbox_seconds: Seconds, temporal_seconds: Seconds }), {
      maxItems: 20,
      description:
        'Age of the oldest start of each task queue: before Temporal has accepted it, and before a worker has taken it. 0: none waits. Null: unknown.',
    }),
    outbox: orUnknown(
      strictObject({
        waiting: Type.Integer({ minimum: 0, description: 'Commands that wait for Temporal.' }),
        oldest_seconds: Type.Number({ minimum: 0 }),
        given_up: Type.Integer({ minimum: 0, description: 'Commands that are no longer tried.' }),
        last_error: nullableText(4_000),
      }),
    ),
    sweeps: orUnknown(
      Type.Array(strictObject({ name: text(100), finished_at: timestamp() }), {
        maxItems: 100,
        description: 'When recurring work last succeeded. The reconciler runs every minute.',
      }),
    ),
    schedules: orUnknown(
      Type.Array(
        resource('schedule', {
          id: text(200),
          paused: Type.Boolean(),
          note: nullableText(2_000),
          last_run_at: nullableTimestamp(),
          next_run_at: nullableTimestamp(),
        }),
        { maxItems: 100 },
      ),
    ),
    processes: orUnknown(
      Type.Array(
        strictObject({
          name: text(100),
          version: text(100),
          host: text(255),
          started_at: timestamp(),
          last_seen_at: timestamp(),
        }),
        { maxItems: MAX_PROCESSES, description: 'Processes that were seen within the last minute.' },
      ),
    ),
  },
  {
    $id: 'ServiceHealth',
    title: 'ServiceHealth',
    description: 'Null: the database or Temporal does not respond.',
  },
);

export const adminHealthRoutes =
  ({
    health,
    dependencies,
    queueAges,
  }: {
    health: HealthService;
    dependencies: Dependencies;
    queueAges: QueueAges;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/health',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminHealth.get',
          summary: 'Get the health of the service: dependencies, queues, schedules, processes',
          tags: ['Admin'],
          response: { 200: ref(ServiceHealthRecord), ...problems() },
        },
      },
      async ({ staff }) => {
        const [states, ages, { outbox, sweeps, schedules, processes }] = await Promise.all([
          dependencies.read(),
          queueAges.read(),
          health.read(staff),
        ]);
        return {
          object: 'service_health' as const,
          dependencies: DEPENDENCIES.map((name) => ({
            name,
            status: states[name],
            latency_ms: dependencies.latencyMs(name),
          })),
          queues: Object.entries(ages).map(([name, { outboxSeconds, temporalSeconds }]) => ({
            name,
            outbox_seconds: outboxSeconds,
            temporal_seconds: temporalSeconds,
          })),
          outbox: outbox && {
            waiting: outbox.waiting,
            oldest_seconds: outbox.oldestSeconds,
            given_up: outbox.givenUp,
            last_error: outbox.lastError,
          },
          sweeps:
            sweeps?.map(({ name, finishedAt }) => ({ name, finished_at: finishedAt.toISOString() })) ?? null,
          schedules:
            schedules?.map(({ id, isPaused, note, lastRunAt, nextRunAt }) => ({
              object: 'schedule' as const,
              id,
              paused: isPaused,
              note,
              last_run_at: lastRunAt?.toISOString() ?? null,
              next_run_at: nextRunAt?.toISOString() ?? null,
            })) ?? null,
          processes:
            processes?.map(({ name, version, host, startedAt, lastSeenAt }) => ({
              name,
              version,
              host,
              started_at: startedAt.toISOString(),
              last_seen_at: lastSeenAt.toISOString(),
            })) ?? null,
        };
      },
    );
    done();
  };
