import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import {
  type ImpersonationDetails,
  type ImpersonationService,
  MAX_IMPERSONATION_MINUTES,
} from '../../domain/impersonation/impersonation.service.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import {
  changeProblems,
  enumOf,
  id,
  NoContent,
  nullableTimestamp,
  orNull,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import { Note } from './note.ts';

const DEFAULT_MINUTES = 30;
const MAX_OPERATIONS = 500;

export const Impersonate = strictObject(
  {
    reason: {
      ...Note,
      description: 'Why. The owners of the organization get it by email, and both audit logs have it.',
    },
    duration_minutes: Type.Optional(
      orNull(
        Type.Integer({
          minimum: 1,
          maximum: MAX_IMPERSONATION_MINUTES,
          description: `Default: ${DEFAULT_MINUTES}.`,
        }),
      ),
    ),
    write: Type.Optional(
      orNull(
        Type.Boolean({
          description:
            'To change mail and settings of mail; for the staff role admin, within ten minutes of signing in. Default: false.',
        }),
      ),
    ),
  },
  { $id: 'Impersonate', title: 'Impersonate' },
);

export const StartedImpersonationRecord = resource(
  'impersonation',
  {
    id: id('Impersonation id (imp_…).'),
    token: text(64, { description: 'Shown once: `Authorization: Bearer imt_…`.' }),
    expires_at: timestamp(),
  },
  { $id: 'StartedImpersonation', title: 'StartedImpersonation' },
);

export const ImpersonationRecord = resource(
  'impersonation',
  {
    id: id('Impersonation id (imp_…).'),
    org_id: id('Organization id (org_…).'),
    staff_id: id('User id of the staff member (usr_…).'),
    write: Type.Boolean(),
    reason: text(2_000),
    status: enumOf(['active', 'ended', 'expired']),
    expires_at: timestamp(),
    ended_at: nullableTimestamp('When it was ended early.'),
    operations: Type.Array(
      strictObject({
        operation: text(128, { description: 'Operation id of the API, or of a page.' }),
        change: Type.Boolean(),
        calls: Type.Integer({ minimum: 1 }),
      }),
      { maxItems: MAX_OPERATIONS, description: 'What it has called, most frequent first.' },
    ),
    created_at: timestamp(),
  },
  { $id: 'Impersonation', title: 'Impersonation' },
);

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

export function presentImpersonation({
  impersonation,
  operations,
}: ImpersonationDetails): Static<typeof ImpersonationRecord> {
  const { endedAt, expiresAt } = impersonation;
  return {
    object: 'impersonation',
    id: impersonation.id,
    org_id: impersonation.organizationId,
    staff_id: impersonation.staffId,
    write: impersonation.allowsWrite,
    reason: impersonation.reason,
    status: endedAt !== null ? 'ended' : expiresAt.getTime() <= Date.now() ? 'expired' : 'active',
    expires_at: expiresAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    operations: operations
      .slice(0, MAX_OPERATIONS)
      .map(({ operation, isChange, calls }) => ({ operation, change: isChange, calls })),
    created_at: impersonation.createdAt.toISOString(),
  };
}
