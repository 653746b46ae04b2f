import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { EnvironmentService } from '../../domain/organizations/environment.service.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { changeProblems, id, NoContent, postProblems, problems, ref, strictObject } from '../schemas.ts';
import {
  CreateEnvironment,
  EnvironmentRecord,
  MinimalEnvironment,
  presentEnvironment,
  UpdateEnvironment,
} from './organization.schemas.ts';

const CHANGE = {
  permission: 'environments:manage',
  readPermission: 'inboxes:read',
  minimalResponse: MinimalEnvironment,
} as const;
const EnvironmentParams = strictObject({ id: id('Id of the environment (env_…).') });

export const environmentRoutes =
  ({
    environments,
    lists,
  }: {
    environments: EnvironmentService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/org/environments',
      {
        config: { permission: 'inboxes:read' },
        schema: {
          operationId: 'organization.listEnvironments',
          summary: 'List the environments the credential may select with x-env-id',
          tags: ['Organization'],
          querystring: PageQuery,
          response: { 200: listOf(ref(EnvironmentRecord)), ...problems() },
        },
      },
      async (request) =>
        lists.present(
          request,
          await environments.list(request.scope, lists.read(request)),
          presentEnvironment,
        ),
    );

    app.post(
      '/org/environments',
      {
        config: CHANGE,
        schema: {
          operationId: 'organization.createEnvironment',
          summary: 'Create an environment',
          description: 'Select it with x-env-id, or bind keys to it.',
          tags: ['Organization'],
          body: ref(CreateEnvironment),
          response: { 201: ref(EnvironmentRecord), ...postProblems() },
        },
      },
      async ({ scope, body: { slug, ...input } }, reply) => {
        const environment = await environments.create(scope, {
          ...input,
          ...(slug === undefined ? {} : { slug }),
        });
        reply.code(201);
        return presentEnvironment(environment);
      },
    );

    app.patch(
      '/org/environments/:id',
      {
        config: CHANGE,
        schema: {
          operationId: 'organization.updateEnvironment',
          summary: 'Rename an environment',
          description: 'The slug of the default environment, production, cannot change.',
          tags: ['Organization'],
          params: EnvironmentParams,
          body: ref(UpdateEnvironment),
          response: { 200: ref(EnvironmentRecord), ...changeProblems() },
        },
      },
      async ({ scope, params, body: { name, slug } }) =>
        presentEnvironment(
          await environments.update(scope, params.id, {
            ...(name === undefined ? {} : { name }),
            ...(slug === undefined ? {} : { slug }),
          }),
        ),
    );

    app.delete(
      '/org/environments/:id',
      {
        config: { permission: 'environments:manage' },
        schema: {
          operationId: 'organization.deleteEnvironment',
          summary: 'Delete an empty environment',
          description:
            'Refused (409) for production, and while it contains inboxes, messages, drafts, files, webhook endpoints, API keys, suppressions or list entries.',
          tags: ['Organization'],
          params: EnvironmentParams,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ scope, params }, reply) => {
        await environments.remove(scope, params.id);
        return reply.code(204).send(null);
      },
    );
    done();
  };
