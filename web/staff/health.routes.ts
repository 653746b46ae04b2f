import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
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
    const finish = (request: FastifyRequest, reply: FastifyReply, work: Promise<unknown>) =>
      console.finish(reply, {
        work,
        back: '/admin/health',
        show: (problem) => show(request, reply, problem),
      });

    app.get(
      '/admin/health',
      {
        config: { staff: 'support' },
        schema: { operationId: 'console.health', querystring: NoticeQuery },
      },
      async (request, reply) => show(request, reply),
    );

    app.post(
      '/admin/health/retry-commands',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.retryCommands',
          body: strictObject({ id: Type.Optional(CommandId), note: Note }),
        },
      },
      async (request, reply) =>
        finish(request, reply, outboxAdministration.retry(request.staff, request.body)),
    );

    app.post(
      '/admin/health/unpause-schedule',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.unpauseSchedule',
          body: strictObject({ schedule_id: text(200, { minLength: 1 }), note: Note }),
        },
      },
      async (request, reply) => {
        const { schedule_id: scheduleId, note } = request.body;
        return finish(request, reply, scheduleAdministration.unpause(request.staff, scheduleId, note));
      },
    );
    done();
  };
