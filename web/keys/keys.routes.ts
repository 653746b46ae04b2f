import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { singleLineText } from '../../api/messages/addresses.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { ApiKeyService } from '../../domain/api-keys/api-key.service.ts';
import { AGENT_PERMISSIONS, KEY_PERMISSIONS, type Permission } from '../../domain/identity/permissions.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import type { MemberService } from '../../domain/organizations/member.service.ts';
import type { Config } from '../../platform/config.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { listQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { ChosenPermissions, readExpiry, readLines, readPermissions } from './key-form.ts';
import { groupPermissions } from './permission-words.ts';
import { findNames } from './person-names.ts';
import { badgesOf, unusedSince } from './use.ts';

export interface KeyPageDependencies {
  pages: Pages;
  apiKeys: ApiKeyService;
  inboxes: InboxService;
  members: MemberService;
  config: Pick<Config, 'PUBLIC_URL'>;
}

const PAGE_SIZE = 50;
const PRESETS = ['agent', 'reader', 'all', 'none'] as const;

const NewKey = strictObject({
  name: singleLineText(255, { minLength: 1 }),
  permissions: ChosenPermissions,
  reach: text(64, { minLength: 1 }),
  inbox: Type.Optional(text(320)),
  expires_at: Type.Optional(text(10)),
  allowed_cidrs: Type.Optional(text(6_500)),
});

/** The list of API keys, and the form that creates one. */
export const keyPages =
  (dependencies: KeyPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, apiKeys, members, config } = dependencies;

    app.get(
      '/keys',
      {
        config: { permission: 'usage:read' },
        schema: {
          operationId: 'pages.keys',
          querystring: listQuery({
            use: Type.Optional(enumOf(['', 'unused'])),
            by: Type.Optional(enumOf(['', 'me'])),
          }),
        },
      },
      async (request, reply) => {
        const { scope, query } = request;
        if (!scope.permissions.has('keys:manage'))
          return pages.seeOther(reply, pages.link(request, '/keys/connections'));
        const me = scope.member?.person.userId;
        const lastUsedBefore = query.use === 'unused' ? unusedSince() : undefined;
        const page = await apiKeys.list(
          scope,
          { lastUsedBefore, createdByUserId: query.by === 'me' ? me : undefined },
          pages.readPage(request, { limit: PAGE_SIZE }),
        );
        return pages.send(request, reply, {
          template: 'keys/keys',
          title: 'Keys and connections',
          data: {
            keys: page.items,
            names: await findNames(members, scope),
            environments: namesOfEnvironments(request),
            badgesOf,
            filter: { use: query.use ?? '', by: query.by ?? '' },
            isFiltered: Boolean(query.use || query.by),
            next: pages.nextPage(request, page),
          },
          apiCall: {
            path: '/api-keys',
            query: {
              limit: PAGE_SIZE,
              last_used_before: lastUsedBefore?.toISOString(),
              created_by_user_id: query.by === 'me' ? me : undefined,
            },
          },
        });
      },
    );

    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { scope, shell } = request;
      const { preset = 'agent' } = request.query as { preset?: (typeof PRESETS)[number] };
      return pages.send(request, reply, {
        template: 'keys/new-key',
        title: 'Create an API key',
        problem,
        data: {
          groups: groupPermissions(grantable(scope)),
          chosen: presetPermissions(preset, scope),
          presets: [
            ['agent', 'An agent’s'],
            ['reader', 'Only reading'],
            ['all', 'All that I may give'],
            ['none', 'None'],
          ],
          preset,
          environments: shell?.environments ?? [],
          today: new Date().toISOString().slice(0, 10),
        },
        apiCall: {
          method: 'POST',
          path: '/api-keys',
          body: { name: 'My agent', permissions: presetPermissions(preset, scope) },
        },
      });
    };
    const presetQuery = listQuery({ preset: Type.Optional(enumOf(PRESETS)) });

    app.get(
      '/keys/new',
      {
        config: { permission: 'keys:manage', impersonation: 'never' },
        schema: { operationId: 'pages.newKey', querystring: presetQuery },
      },
      async (request, reply) => show(request, reply),
    );

    pages.form(app, '/keys/new', {
      config: { permission: 'keys:manage' },
      schema: { operationId: 'pages.createKey', querystring: presetQuery, body: NewKey },
      work: async ({ scope, body }) =>
        apiKeys.create(scope, {
          name: body.name,
          permissions: readPermissions(body.permissions),
          ...(await readReach(dependencies.inboxes, scope, body)),
          expiresAt: readExpiry(body.expires_at) ?? undefined,
          allowedCidrs: readLines(body.allowed_cidrs),
        }),
      show,
      done: (request, reply, { key, token }) =>
        pages.send(request, reply, {
          template: 'keys/key-token',
          title: 'Your new API key',
          data: { key, token, publicUrl: config.PUBLIC_URL },
        }),
    });
    done();
  };

/** The permissions that the person may give to a key. */
export const grantable = ({ permissions }: Scope): ReadonlySet<Permission> =>
  new Set(KEY_PERMISSIONS.filter((permission) => permissions.has(permission)));

function presetPermissions(preset: (typeof PRESETS)[number], scope: Scope): Permission[] {
  const mine = [...grantable(scope)];
  if (preset === 'agent') return mine.filter((permission) => AGENT_PERMISSIONS.includes(permission));
  if (preset === 'reader')
    return mine.filter(
      (permission) => AGENT_PERMISSIONS.includes(permission) && permission.endsWith(':read'),
    );
  return preset === 'all' ? mine : [];
}

export const namesOfEnvironments = ({ shell }: FastifyRequest): ReadonlyMap<string, string> =>
  new Map(shell?.environments.map(({ id, name }) => [id, name]));

/** What the key reaches: the whole organization, an environment, or one inbox, which the person names by its address. */
async function readReach(
  inboxes: InboxService,
  scope: Scope,
  { reach, inbox }: Static<typeof NewKey>,
): Promise<{ environmentId?: string; inboxId?: string }> {
  if (reach === 'organization') return {};
  if (reach !== 'inbox') return { environmentId: reach };
  const email = inbox?.trim();
  const found = email ? await inboxes.list(scope, { email }, { limit: 1, order: 'asc' }) : { items: [] };
  const [first] = found.items;
  if (!first)
    throw invalid(
      '/body/inbox',
      'is not an inbox of this environment',
      'Copy the address from the list of inboxes.',
    );
  return { environmentId: first.environmentId, inboxId: first.id };
}
