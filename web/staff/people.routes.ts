import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Note } from '../../api/admin/note.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { ACCOUNT_STATUSES } from '../../domain/administration/find-users.ts';
import type { KeyAdministrationService } from '../../domain/administration/key-administration.service.ts';
import type {
  AccessChange,
  UserAdministrationService,
} from '../../domain/administration/user-administration.service.ts';
import type { StaffScope } from '../../domain/staff/staff-scope.ts';
import type { AppError } from '../../platform/errors.ts';
import { OptionalText } from '../shell/forms.ts';
import { Checked, type Console, NoticeQuery, ResourceParams, staffListQuery } from './console.ts';
import { filled } from './filters.ts';

export interface PeopleConsoleDependencies {
  console: Console;
  userAdministration: UserAdministrationService;
  keyAdministration: KeyAdministrationService;
}

const LATEST = { limit: 100, order: 'desc' } as const;

/** Accounts of people: find one, see sessions, factors and memberships, suspend it, help it in. */
export const peopleConsole =
  (dependencies: PeopleConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { console, userAdministration, keyAdministration } = dependencies;

    app.get(
      '/admin/people',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.people',
          querystring: staffListQuery({
            q: OptionalText(254),
            status: Type.Optional(enumOf(['', ...ACCOUNT_STATUSES])),
            organization_id: OptionalText(64),
          }),
        },
      },
      async (request, reply) => {
        const { q, status, organization_id: organizationId } = request.query;
        const page = await userAdministration.list(
          request.staff,
          filled({ query: q?.trim(), status: status || undefined, organizationId }),
          console.readPage(request),
        );
        return console.send(request, reply, {
          template: 'staff/people',
          title: 'People',
          data: {
            filter: filled({ q, status, organizationId }),
            statuses: ACCOUNT_STATUSES,
            people: page.items,
            nextPage: console.nextPage(request, page),
          },
        });
      },
    );

    type PersonRequest = FastifyRequest<{ Params: { id: string } }>;
    const show = async (request: PersonRequest, reply: FastifyReply, problem?: AppError) => {
      const { staff, params } = request;
      const person = await userAdministration.get(staff, params.id);
      const keys = await keyAdministration.list(staff, { createdByUserId: params.id }, LATEST);
      return console.send(request, reply, {
        template: 'staff/person',
        title: person.name ?? person.email,
        problem,
        log: { resourceId: params.id },
        data: { person, keys: keys.items, isSelf: params.id === staff.staffId },
      });
    };

    app.get(
      '/admin/people/:id',
      {
        config: { staff: 'support' },
        schema: { operationId: 'console.person', params: ResourceParams, querystring: NoticeQuery },
      },
      async (request, reply) => show(request, reply),
    );

    const { suspend, reinstate, revokeSessions, resetMfa } = userAdministration;
    const withNote =
      (change: typeof reinstate | typeof revokeSessions): ChangePerson =>
      (staff, userId, { note }) =>
        change(staff, userId, note);
    const changes: [path: string, change: ChangePerson][] = [
      ['suspend', suspend],
      ['reinstate', withNote(reinstate)],
      ['reset-mfa', resetMfa],
      ['revoke-sessions', withNote(revokeSessions)],
    ];
    for (const [path, change] of changes)
      console.form(app, `/admin/people/:id/${path}`, {
        config: { staff: 'admin' },
        schema: {
          operationId: `console.${path.replace(/-(\w)/g, (_match, letter: string) => letter.toUpperCase())}OfPerson`,
          params: ResourceParams,
          body: strictObject({ note: Note, leave_without_break_glass: Checked }),
        },
        work: ({ staff, params, body: { note, leave_without_break_glass: accepted } }) =>
          change(staff, params.id, { note, leaveWithoutBreakGlass: accepted === 'on' }),
        show,
      });

    console.form(app, '/admin/people/:id/keys/revoke', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.revokeKeyOfPerson',
        params: ResourceParams,
        body: strictObject({ key_id: text(64), children: Checked, note: Note }),
      },
      work: ({ staff, body: { key_id: keyId, children, note } }) =>
        keyAdministration.revoke(staff, keyId, { note, children: children === 'on' }),
      show,
    });
    done();
  };

type ChangePerson = (staff: StaffScope, userId: string, change: AccessChange) => Promise<unknown>;
