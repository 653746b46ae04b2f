import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { presentImpersonation } from '../../api/admin/impersonation.schemas.ts';
import { Note } from '../../api/admin/note.ts';
import { type Lists, pageQuery } from '../../api/lists.ts';
import type { BrowserSession } from '../../api/plugins/browser-session.ts';
import { id, strictObject, text } from '../../api/schemas.ts';
import type { ImpersonationService } from '../../domain/impersonation/impersonation.service.ts';
import { AppError } from '../../platform/errors.ts';
import type { Pages } from '../shell/pages.ts';
import type { Console } from './console.ts';
import { nextPage } from './filters.ts';

export interface ImpersonationPageDependencies {
  console: Console;
  pages: Pages;
  impersonations: ImpersonationService;
  browserSession: BrowserSession;
  lists: Lists;
}

const OrganizationParams = strictObject({ id: id('Organization id (org_…).') });
const LATEST = { limit: 20, order: 'desc' } as const;

/** Support sessions in an organization: who had them and what they looked at, and the form that begins one in this browser. */
export const impersonationPages =
  ({
    console,
    pages,
    impersonations,
    browserSession,
    lists,
  }: ImpersonationPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    async function show(
      request: FastifyRequest,
      reply: FastifyReply,
      organizationId: string,
      problem?: AppError,
    ) {
      const isForm = problem !== undefined;
      const page = await impersonations.list(
        request.staff,
        organizationId,
        isForm ? LATEST : lists.read(request),
      );
      return console.send(request, reply, {
        template: 'staff/impersonations',
        title: 'Impersonation',
        problem,
        log: { organizationId, action: 'impersonation.started' },
        data: {
          organizationId,
          sessions: page.items.map(presentImpersonation),
          nextPage: isForm
            ? undefined
            : nextPage(
                request,
                lists.present(request, page, () => null),
              ),
        },
      });
    }

    app.get(
      '/admin/organizations/:id/impersonations',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.impersonations',
          params: OrganizationParams,
          querystring: strictObject({ ...pageQuery, notice: Type.Optional(text(64)) }),
        },
      },
      async (request, reply) => show(request, reply, request.params.id),
    );

    app.post(
      '/admin/organizations/:id/impersonations',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.impersonate',
          params: OrganizationParams,
          body: strictObject({
            note: Note,
            duration_minutes: Type.Unsafe<string>({
              type: 'string',
              maxLength: 2,
              pattern: '^([1-9]|[1-5]\\d|60)$',
            }),
            write: Type.Optional(text(8)),
          }),
        },
      },
      async (request, reply) => {
        const { staff, params, body } = request;
        const begun = await impersonations
          .start(staff, params.id, {
            reason: body.note,
            durationMinutes: Number(body.duration_minutes),
            allowsWrite: body.write === 'on',
          })
          .catch((error: unknown) => {
            if (error instanceof AppError && error.status < 500 && error.status !== 401) return error;
            throw error;
          });
        if (begun instanceof AppError) return show(request, reply, params.id, begun);
        browserSession.startImpersonation(reply, begun);
        return pages.seeOther(reply, `/overview?org=${params.id}`);
      },
    );

    app.post(
      '/admin/impersonations/end',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.endImpersonation',
          body: strictObject({ impersonation_id: text(64), organization_id: text(64) }),
        },
      },
      async (request, reply) => {
        const { impersonation_id: impersonationId, organization_id: organizationId } = request.body;
        return console.finish(reply, {
          work: impersonations.end(request.staff, impersonationId),
          back: `/admin/organizations/${encodeURIComponent(organizationId)}/impersonations`,
          notice: 'impersonation-ended',
          show: (problem) => show(request, reply, organizationId, problem),
        });
      },
    );

    // The button of the banner: works with the staff member's own session, whatever has become of their role.
    app.post(
      '/impersonation/end',
      {
        config: { person: 'any' },
        schema: { operationId: 'pages.endImpersonation', body: strictObject({}) },
      },
      async (request, reply) => {
        const token = browserSession.readImpersonation(request);
        if (token !== undefined) await impersonations.endByToken(token, request.id);
        browserSession.endImpersonation(reply);
        return pages.seeOther(reply, '/admin', 'impersonation-ended');
      },
    );
    done();
  };
