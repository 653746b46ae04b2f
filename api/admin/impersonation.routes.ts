import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { ImpersonationService } from '../../domain/impersonation/impersonation.service.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { changeProblems, id, NoContent, postProblems, problems, ref, strictObject } from '../schemas.ts';
import {
  DEFAULT_MINUTES,
  Impersonate,
  ImpersonationRecord,
  presentImpersonation,
  StartedImpersonationRecord,
} from './impersonation.schemas.ts';

const OrganizationParams = strictObject({ id: id('Organization id (org_…).') });
const SessionParams = strictObject({ sessionId: id('Impersonation id (imp_…).') });
const tags = ['Admin'];

export const impersonationRoutes =
  ({
    impersonations,
    lists,
  }: {
    impersonations: ImpersonationService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/orgs/:id/impersonate',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'impersonations.start',
          summary: 'See an organization as its people do',
          description:
            'Its token is bound to your session and ends with it. For reading, unless an admin asks for more; never for members, keys, policies, single sign-on, approvals, billing and exports. If the organization asks for its consent, this is a 403 until an owner has agreed.',
          tags,
          params: OrganizationParams,
          body: ref(Impersonate),
          response: { 201: ref(StartedImpersonationRecord), ...postProblems() },
        },
      },
      async ({ staff, params, body }, reply) => {
        const {
          reason,
          duration_minutes: durationMinutes = DEFAULT_MINUTES,
          write: allowsWrite = false,
        } = body;
        const started = await impersonations.start(staff, params.id, {
          reason,
          durationMinutes,
          allowsWrite,
        });
        return reply.code(201).send({
          object: 'impersonation',
          id: started.id,
          token: started.token,
          expires_at: started.expiresAt.toISOString(),
        });
      },
    );

    app.get(
      '/orgs/:id/impersonation-sessions',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'impersonations.list',
          summary: 'List the support sessions of staff in an organization',
          tags,
          params: OrganizationParams,
          querystring: PageQuery,
          response: { 200: listOf(ref(ImpersonationRecord)), ...problems() },
        },
      },
      async (request) => {
        const { staff, params } = request;
        const page = await impersonations.list(staff, params.id, lists.read(request));
        return lists.present(request, page, presentImpersonation);
      },
    );

    app.delete(
      '/impersonation-sessions/:sessionId',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'impersonations.end',
          summary: 'End a support session',
          description: 'Your own, or any as admin. Does nothing if it has ended.',
          tags,
          params: SessionParams,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ staff, params }, reply) => {
        await impersonations.end(staff, params.sessionId);
        return reply.code(204).send(null);
      },
    );
    done();
  };
