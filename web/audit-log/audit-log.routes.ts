import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { AuditFilter, AuditLogService } from '../../domain/audit/audit-log.service.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import type { MemberService } from '../../domain/organizations/member.service.ts';
import { invalid } from '../../platform/errors.ts';
import { listQuery, OptionalText } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { ACTION_GROUPS, describeAction, describeChanges, describeResource } from './audit-words.ts';

export interface AuditLogPageDependencies {
  pages: Pages;
  auditLog: AuditLogService;
  members: MemberService;
}

/** Offered as a filter. Every other actor is reached by their name in a row. */
const OFFERED_MEMBERS = { limit: 100, order: 'asc' } as const;

const Query = listQuery({
  action: OptionalText(100),
  actor_id: OptionalText(64),
  resource_id: OptionalText(320),
  from: OptionalText(10),
  to: OptionalText(10),
});

/** Who changed what in the organization, and how it was before. */
export const auditLogPages =
  ({ pages, auditLog, members }: AuditLogPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/audit-log',
      {
        config: { permission: 'audit:read' },
        schema: { operationId: 'pages.auditLog', querystring: Query },
      },
      async (request, reply) => {
        const { scope, query } = request;
        const filter = readFilter(query);
        const [page, people] = await Promise.all([
          auditLog.list(scope, filter, pages.readPage(request, { limit: 50 })),
          listPeople(members, scope),
        ]);
        const { after, before, actorId, resourceId, action } = filter;
        return pages.send(request, reply, {
          template: 'audit-log/audit-log',
          title: 'Audit log',
          data: {
            changes: page.items.map((entry) => ({
              ...entry,
              what: describeAction(entry.action),
              resource: describeResource(entry),
              values: describeChanges(entry.details),
            })),
            next: pages.nextPage(request, page),
            filter: query,
            isFiltered: Object.keys(filter).length > 0,
            people: offerActor(people, page.items, query.actor_id),
            actions: ACTION_GROUPS,
          },
          apiCall: {
            path: '/org/audit-log',
            query: {
              limit: 50,
              action,
              actor_id: actorId,
              resource_id: resourceId,
              after: after?.toISOString(),
              before: before?.toISOString(),
            },
          },
        });
      },
    );
    done();
  };

interface Query {
  action?: string;
  actor_id?: string;
  resource_id?: string;
  from?: string;
  to?: string;
}

function readFilter({ action, actor_id: actorId, resource_id: resourceId, from, to }: Query): AuditFilter {
  const after = readDay('from', from);
  const last = readDay('to', to);
  return {
    ...(action ? { action } : {}),
    ...(actorId ? { actorId } : {}),
    ...(resourceId ? { resourceId } : {}),
    ...(after ? { after } : {}),
    // The last day belongs to the filter.
    ...(last ? { before: new Date(last.getTime() + DAY_MS) } : {}),
  };
}

const DAY_MS = 86_400_000;

/** @throws AppError `validation_error`. */
function readDay(name: string, day: string | undefined): Date | undefined {
  if (!day) return undefined;
  const date = new Date(`${day}T00:00:00Z`);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day) || Number.isNaN(date.getTime()) || date.getUTCFullYear() < 1970)
    throw invalid(`/query/${name}`, 'is not a valid day', 'Use a day such as 2026-11-21.');
  return date;
}

type Choice = readonly [id: string, name: string];

/** Those who read the log may see the members, except in support sessions with fewer permissions. */
async function listPeople(members: MemberService, scope: Scope): Promise<Choice[]> {
  if (!scope.permissions.has('members:read')) return [];
  const { items } = await members.list(scope, OFFERED_MEMBERS);
  return items.map(({ userId, name, email }) => [userId, name ? `${name} (${email})` : email]);
}

/** The chosen actor may be a key, staff or a former member, which the list of members lacks. */
function offerActor(
  people: Choice[],
  rows: readonly { actorId: string; actorName: string | null }[],
  chosen: string | undefined,
): Choice[] {
  if (!chosen || people.some(([id]) => id === chosen)) return people;
  const name = rows.find(({ actorId }) => actorId === chosen)?.actorName;
  return [...people, [chosen, name ?? chosen]];
}
