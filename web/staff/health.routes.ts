import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CommandId } from '../../api/admin/command-id.ts';
import { Note } from '../../api/admin/note.ts';
import { strictObject, text } from '../../api/schemas.ts';
import type { HealthService } from '../../domain/monitoring/health.service.ts';
import type { OutboxAdministrationService } from '../../domain/monitoring/outbox-administration.service.ts';
import type { ScheduleAdministrationService } from '../../domain/monitoring/schedule-administration.service.ts';
import { DEPENDENCIES, type Dependencies } from '../../platform/dependencies.ts';
import type { AppError } from '../../platform/errors.ts';
import type { QueueAges } from '../../platform/outbox/queue-ages.ts';
import { type Console, NoticeQuery } from './console.ts';

export interface HealthConsoleDependencies {
  console: Console;
  health: HealthService;
  dependencies: Dependencies;
  queueAges: QueueAges;
  outboxAdministration: OutboxAdministrationService;
  scheduleAdministration: ScheduleAdministrationService;
}

/** Of the commands that were given up, on the page. */
const MAX_SHOWN = 50;

/** The health of the service: dependencies, queues, given-up commands, schedules, processes. */
export const healthConsole =
  ({
    console,
    health,
    dependencies,
    queueAges,
    outboxAdministration,
    scheduleAdministration,
  }: HealthConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const [states, ages, facts] = await Promise.all([
        dependencies.read(),
        queueAges.read(),
        health.read(request.staff),
      ]);
      const givenUp = facts.outbox ? await outboxAdministration.list(request.staff, MAX_SHOWN) : [];
      return console.send(request, reply, {
        template: 'staff/health',
        title: 'Health',
        problem,
        data: {
          ...facts,
          givenUp,
          dependencies: DEPENDENCIES.map((name) => ({
            name,
            status: states[name],
            latencyMs: dependencies.latencyMs(name),
          })),
          queues: Object.entries(ages),
        },
      });
    };
    app.get(
      '/admin/health',
      {
        config: { staff: 'support' },
        schema: { operationId: 'console.health', querystring: NoticeQuery },
      },
      async (request, reply) => show(request, reply),
    );

    console.form(app, '/admin/health/retry-commands', {
      config: { staff: 'support' },
      schema: {
        operationId: 'console.retryCommands',
        body: strictObject({ id: CommandId, note: Note }),
      },
      work: ({ staff, body }) => outboxAdministration.retry(staff, body),
      show,
    });

    console.form(app, '/admin/health/retry-all-commands', {
      config: { staff: 'support' },
      schema: { operationId: 'console.retryAllCommands', body: strictObject({ note: Note }) },
      work: ({ staff, body }) => outboxAdministration.retry(staff, body),
      show,
    });

    console.form(app, '/admin/health/unpause-schedule', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.unpauseSchedule',
        body: strictObject({ schedule_id: text(200, { minLength: 1 }), note: Note }),
      },
      work: ({ staff, body }) => scheduleAdministration.unpause(staff, body.schedule_id, body.note),
      show,
    });
    done();
  };
