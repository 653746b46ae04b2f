import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Note } from '../../api/admin/note.ts';
import { strictObject, text } from '../../api/schemas.ts';
import { MAX_ENDPOINTS } from '../../domain/administration/endpoint-backlog.ts';
import type { OrganizationOperationsService } from '../../domain/administration/organization-operations.service.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { MAX_POSTPONE_DAYS } from '../../workflows/retention/apply-retention.contract.ts';
import { NumberField, requireNumber } from '../shell/forms.ts';
import { Checked, type Console, LocalTime, NoticeQuery, ResourceParams, readLocalTime } from './console.ts';

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
    app.get(
      '/admin/organizations/:id/operations',
      {
        config: { staff: 'support' },
        schema: { operationId: 'console.operations', params: ResourceParams, querystring: NoticeQuery },
      },
      async (request, reply) => show(request, reply),
    );

    console.form(app, '/admin/organizations/:id/operations/postpone-retention', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.postponeRetention',
        params: ResourceParams,
        body: strictObject({ days: NumberField, note: Note }),
      },
      work: async ({ staff, params, body: { days, note } }) =>
        operations.postponeRetention(staff, params.id, {
          days: requireNumber('days', days, { min: 1, max: MAX_POSTPONE_DAYS }),
          note,
        }),
      show,
    });

    console.form(app, '/admin/organizations/:id/operations/replay-endpoint', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.replayEndpoint',
        params: ResourceParams,
        body: strictObject({ endpoint_id: text(64), since: LocalTime, only_failed: Checked, note: Note }),
      },
      work: async ({ staff, params, body }) => {
        const since = readLocalTime('since', body.since);
        if (since.getTime() >= Date.now())
          throw invalid('/body/since', 'must be in the past', 'Choose an earlier time.');
        return operations.replayEndpoint(
          staff,
          { organizationId: params.id, endpointId: body.endpoint_id },
          { since, onlyFailed: body.only_failed === 'on', note: body.note },
        );
      },
      show,
    });

    console.form(app, '/admin/organizations/:id/operations/drop-backlog', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.dropBacklog',
        params: ResourceParams,
        body: strictObject({ endpoint_id: text(64), note: Note }),
      },
      work: ({ staff, params, body: { endpoint_id: endpointId, note } }) =>
        operations.dropBacklog(staff, { organizationId: params.id, endpointId }, { note }),
      show,
    });
    done();
  };
