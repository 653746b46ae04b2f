import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { DEFAULT_ENVIRONMENT_SLUG } from '../../domain/organizations/environment.entity.ts';
import type { EnvironmentService } from '../../domain/organizations/environment.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { settingsTabs } from './settings-tabs.ts';

const PATH = '/settings/environments';
const permission = 'environments:manage';
/** As many as an organization may have. */
const ALL = { limit: 100, order: 'asc' } as const;

export const environmentPages =
  ({
    pages,
    environments,
  }: {
    pages: Pages;
    environments: EnvironmentService;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { items } = await environments.list(request.scope, ALL);
      return pages.send(request, reply, {
        template: 'settings/environments',
        title: 'Settings',
        problem,
        data: {
          tabs: settingsTabs(pages, request),
          environments: items.map((row) => ({ ...row, isDefault: row.slug === DEFAULT_ENVIRONMENT_SLUG })),
        },
        apiCall: { path: '/org/environments', query: { limit: 100, order: 'asc' } },
      });
    };
    const saved = (request: FastifyRequest, reply: FastifyReply) =>
      pages.seeOther(reply, pages.link(request, PATH), 'saved');

    app.get(
      '/settings/environments',
      {
        config: { permission: 'inboxes:read' },
        schema: { operationId: 'pages.environments', querystring: OrganizationQuery },
      },
      async (request, reply) => show(request, reply),
    );

    pages.form(app, PATH, {
      config: { permission },
      schema: {
        operationId: 'pages.createEnvironment',
        body: strictObject({
          name: text(200, { minLength: 1 }),
          kind: enumOf(['production', 'sandbox']),
        }),
      },
      work: ({ scope, body }) => environments.create(scope, body),
      show,
      done: saved,
    });

    pages.form(app, `${PATH}/rename`, {
      config: { permission },
      schema: {
        operationId: 'pages.renameEnvironment',
        body: strictObject({ environment_id: text(64), name: text(200, { minLength: 1 }) }),
      },
      work: ({ scope, body }) => environments.update(scope, body.environment_id, { name: body.name }),
      show,
      done: saved,
    });

    pages.form(app, `${PATH}/delete`, {
      config: { permission },
      schema: {
        operationId: 'pages.deleteEnvironment',
        body: strictObject({ environment_id: text(64) }),
      },
      work: ({ scope, body }) => environments.remove(scope, body.environment_id),
      show,
      // The page may have shown the deleted one.
      done: (request, reply) => pages.seeOther(reply, `${PATH}?org=${request.scope.organizationId}`, 'saved'),
    });
    done();
  };
