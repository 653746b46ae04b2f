import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { OutboxAdministrationService } from '../../domain/monitoring/outbox-administration.service.ts';
import type { ScheduleAdministrationService } from '../../domain/monitoring/schedule-administration.service.ts';
import { MAX_LISTED, MAX_RETRIED } from '../../platform/outbox/dead-commands.ts';
import {
  nullableText,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import { CommandId } from './command-id.ts';
import { Note } from './note.ts';
import { AdminNote } from './organizations.schemas.ts';

export const GivenUpCommandList = strictObject(
  {
    data: Type.Array(
      resource('outbox_command', {
        id: CommandId,
        owner_id: text(128, { description: 'The organization, person or staff member of the change.' }),
        workflow_id: nullableText(320),
        attempts: Type.Integer({ minimum: 0 }),
        last_error: nullableText(4_000),
        created_at: timestamp(),
        given_up_at: timestamp(),
      }),
      { maxItems: MAX_LISTED },
    ),
  },
  { $id: 'GivenUpCommandList', title: 'GivenUpCommandList', description: 'The oldest 1,000.' },
);

export const RetryCommands = strictObject(
  { id: Type.Optional(CommandId), note: Note },
  { $id: 'RetryCommands', title: 'RetryCommands' },
);
export const RetriedCommandsRecord = resource(
  'outbox_retry',
  {
    retried: Type.Integer({ minimum: 0, maximum: MAX_RETRIED }),
    left: Type.Integer({ minimum: 0, maximum: MAX_LISTED, description: 'Given-up commands that are left.' }),
  },
  { $id: 'RetriedCommands', title: 'RetriedCommands' },
);
export const UnpausedSchedule = resource(
  'schedule',
  { id: text(200), effect: text(32, { description: 'unpaused: the command is on its way to Temporal.' }) },
  { $id: 'UnpausedSchedule', title: 'UnpausedSchedule' },
);

/** What waits for Temporal although nothing tries it: commands that were given up, and schedules that are paused. */
export const outboxRoutes =
  ({
    outboxAdministration,
    scheduleAdministration,
  }: {
    outboxAdministration: OutboxAdministrationService;
    scheduleAdministration: ScheduleAdministrationService;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/outbox',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'outbox.list',
          summary: 'List the commands for Temporal that were given up, oldest first',
          tags: ['Admin'],
          response: { 200: ref(GivenUpCommandList), ...problems() },
        },
      },
      async ({ staff }) => ({
        data: (await outboxAdministration.list(staff, MAX_LISTED)).map((command) => ({
          object: 'outbox_command' as const,
          id: command.id,
          owner_id: command.organizationId,
          workflow_id: command.workflowId,
          attempts: command.attempts,
          last_error: command.lastError?.slice(0, 4_000) ?? null,
          created_at: new Date(command.createdAt).toISOString(),
          given_up_at: new Date(command.deadAt).toISOString(),
        })),
      }),
    );

    app.post(
      '/outbox/retry',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'outbox.retry',
          summary: 'Retry a command that was given up, or the oldest 1,000',
          description: 'They are delivered within a minute.',
          tags: ['Admin'],
          body: ref(RetryCommands),
          response: { 202: ref(RetriedCommandsRecord), ...postProblems() },
        },
      },
      async ({ staff, body }, reply) => {
        const retried = await outboxAdministration.retry(staff, body);
        reply.code(202);
        return { object: 'outbox_retry' as const, ...retried };
      },
    );

    app.post(
      '/schedules/:scheduleId/unpause',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'schedules.unpause',
          summary: 'Unpause a schedule of the service',
          tags: ['Admin'],
          params: strictObject({
            scheduleId: text(200, {
              minLength: 1,
              pattern: '^[A-Za-z0-9_.-]+$',
              description: 'Schedule id, for example reconcile.',
            }),
          }),
          body: ref(AdminNote),
          response: { 202: ref(UnpausedSchedule), ...postProblems() },
        },
      },
      async ({ staff, params, body }, reply) => {
        const { id: scheduleId } = await scheduleAdministration.unpause(staff, params.scheduleId, body.note);
        reply.code(202);
        return { object: 'schedule' as const, id: scheduleId, effect: 'unpaused' };
      },
    );
    done();
  };
