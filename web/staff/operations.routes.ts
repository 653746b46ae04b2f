import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Note } from '../../api/admin/note.ts';
import { strictObject, text } from '../../api/schemas.ts';
import { parseDay } from '../../api/time.ts';
import { MAX_ENDPOINTS } from '../../domain/administration/endpoint-backlog.ts';
import type { OrganizationOperationsService } from '../../domain/administration/organization-operations.service.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { MAX_POSTPONE_DAYS } from '../../workflows/retention/apply-retention.contract.ts';
import { Checked, type Console, NoticeQuery, ResourceParams } from './console.ts';

export interface OperationsConsoleDependencies {
  console: Console;
  organizationOperations: OrganizationOperationsService;
}

type OrganizationRequest = FastifyRequest<{ Params: { id: string } }>;

/** The retention of an organization, and the backlogs of its webhook endpoints. */
export const operationsConsole =
  ({
    console,
    organizationOperations: operations,
  }: OperationsConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: OrganizationRequest, reply: FastifyReply, problem?: AppError) => {
      const { staff, params } = request;
      const [retention, endpoints] = await Promise.all([
        operations.getRetention(staff, params.id),
        operations.listEndpoints(staff, params.id),
      ]);
      return console.send(request, reply, {
        template: 'staff/operations',
        title: 'Retention and webhooks',
        problem,
        log: { organizationId: params.id },
        data: {
          organizationId: params.id,
          retention,
          endpoints,
          maxEndpoints: MAX_ENDPOINTS,
          maxDays: MAX_POSTPONE_DAYS,
        },
      });
    };
    const finish = (request: OrganizationRequest, reply: FastifyReply, work: Promise<unknown>) =>
      console.finish(reply, {
        work,
        back: `/admin/organizations/${request.params.id}/operations`,
        show: (problem) => show(request, reply, problem),
      });

    app.get(
      '/admin/organizations/:id/operations',
      {
        config: { staff: 'support' },
        schema: { operationId: 'console.operations', params: ResourceParams, querystring: NoticeQuery },
      },
      async (request, reply) => show(request, reply),
    );

    app.post(
      '/admin/organizations/:id/postpone-retention',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.postponeRetention',
          params: ResourceParams,
          body: strictObject({
            days: Type.Unsafe<string>({ type: 'string', maxLength: 3, pattern: '^[1-9]\\d*$' }),
            note: Note,
          }),
        },
      },
      async (request, reply) => {
        const { days, note } = request.body;
        const postpone = async () =>
          operations.postponeRetention(request.staff, request.params.id, {
            days: requireDays(Number(days)),
            note,
          });
        return finish(request, reply, postpone());
      },
    );

    app.post(
      '/admin/organizations/:id/replay-endpoint',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.replayEndpoint',
          params: ResourceParams,
          body: strictObject({
            endpoint_id: text(64),
            since: Type.Unsafe<string>({
              type: 'string',
              maxLength: 16,
              pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d$',
            }),
            only_failed: Checked,
            note: Note,
          }),
        },
      },
      async (request, reply) => {
        const { endpoint_id: endpointId, since, only_failed: onlyFailed, note } = request.body;
        const replay = async () =>
          operations.replayEndpoint(
            request.staff,
            { organizationId: request.params.id, endpointId },
            { since: parseDay('/body/since', `${since}:00Z`), onlyFailed: onlyFailed === 'on', note },
          );
        return finish(request, reply, replay());
      },
    );

    app.post(
      '/admin/organizations/:id/drop-backlog',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.dropBacklog',
          params: ResourceParams,
          body: strictObject({ endpoint_id: text(64), note: Note }),
        },
      },
      async (request, reply) => {
        const { endpoint_id: endpointId, note } = request.body;
        const target = { organizationId: request.params.id, endpointId };
        return finish(request, reply, operations.dropBacklog(request.staff, target, { note }));
      },
    );
    done();
  };

function requireDays(days: number): number {
  if (days <= MAX_POSTPONE_DAYS) return days;
  throw invalid('/body/days', `must be at most ${MAX_POSTPONE_DAYS}`, 'Postpone it again later if needed.');
}
