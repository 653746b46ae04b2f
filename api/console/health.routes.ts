import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { HealthService } from '../../domain/monitoring/health.service.ts';
import { DEPENDENCIES, type Dependencies } from '../../platform/dependencies.ts';
import type { QueueAges } from '../../platform/outbox/queue-ages.ts';
import { type Console, NoticeQuery } from './console.ts';

export interface HealthConsoleDependencies {
  console: Console;
  health: HealthService;
  dependencies: Dependencies;
  queueAges: QueueAges;
}

/** The health of the service: dependencies, queues, schedules, processes. */
export const healthConsole =
  ({ console, health, dependencies, queueAges }: HealthConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/admin/health',
      {
        config: { staff: 'support' },
        schema: { operationId: 'console.health', querystring: NoticeQuery },
      },
      async (request, reply) => {
        const [states, ages, facts] = await Promise.all([
          dependencies.read(),
          queueAges.read(),
          health.read(request.staff),
        ]);
        return console.send(request, reply, {
          template: 'console/health',
          title: 'Health',
          data: {
            ...facts,
            dependencies: DEPENDENCIES.map((name) => ({
              name,
              status: states[name],
              latencyMs: dependencies.latencyMs(name),
            })),
            queues: Object.entries(ages),
          },
        });
      },
    );
    done();
  };
