import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { presentImpersonation } from '../../api/admin/impersonation.schemas.ts';
import { Note } from '../../api/admin/note.ts';
import type { BrowserSession } from '../../api/plugins/browser-session.ts';
import { id, strictObject, text } from '../../api/schemas.ts';
import type { ImpersonationService } from '../../domain/impersonation/impersonation.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { NumberField, requireNumber } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { Checked, type Console, staffListQuery } from './console.ts';

export interface ImpersonationPageDependencies {
  console: Console;
  pages: Pages;
  impersonations: ImpersonationService;
  browserSession: BrowserSession;
}

const OrganizationParams = strictObject({ id: id('Organization id (org_…).') });
const MAX_MINUTES = 60;
type OrganizationRequest = FastifyRequest<{ Params: { id: string } }>;

/** Support sessions in an organization: who had them and what they looked at, and the form that begins one in this browser. */
export const impersonationPages =
  ({
    console,
    pages,
    impersonations,
    browserSession,
  }: ImpersonationPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    async function show(request: OrganizationRequest, reply: FastifyReply, problem?: AppError) {
      const { id: organizationId } = request.params;
      const page = await impersonations.list(request.staff, organizationId, console.readPage(request));
      return console.send(request, reply, {
        template: 'staff/impersonations',
        title: 'Impersonation',
        problem,
        log: { organizationId, action: 'impersonation.started' },
        data: {
          organizationId,
          sessions: page.items.map(presentImpersonation),
          nextPage: console.nextPage(request, page),
          maxMinutes: MAX_MINUTES,
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
          querystring: staffListQuery({}),
        },
      },
      async (request, reply) => show(request, reply),
    );

    console.form(app, '/admin/organizations/:id/impersonations', {
      config: { staff: 'support' },
      schema: {
        operationId: 'console.impersonate',
        params: OrganizationParams,
        body: strictObject({ note: Note, duration_minutes: NumberField, write: Checked }),
      },
      work: async ({ staff, params, body }) =>
        impersonations.start(staff, params.id, {
          reason: body.note,
          durationMinutes: requireNumber('duration_minutes', body.duration_minutes, {
            min: 1,
            max: MAX_MINUTES,
          }),
          allowsWrite: body.write === 'on',
        }),
      show,
      done(request, reply, begun) {
        browserSession.startImpersonation(reply, begun);
        return pages.seeOther(reply, `/overview?org=${request.params.id}`);
      },
    });

    console.form(app, '/admin/organizations/:id/impersonations/end', {
      config: { staff: 'support' },
      schema: {
        operationId: 'console.endImpersonation',
        params: OrganizationParams,
        body: strictObject({ impersonation_id: text(64) }),
      },
      work: ({ staff, body }) => impersonations.end(staff, body.impersonation_id),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.addressOf(request), 'impersonation-ended'),
    });

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
