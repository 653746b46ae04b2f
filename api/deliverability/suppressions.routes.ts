import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { SuppressionService } from '../../domain/deliverability/suppression.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { changeProblems, NoContent, postProblems, problems, ref, strictObject, text } from '../schemas.ts';
import {
  CreateSuppression,
  presentSuppression,
  SUPPRESSION_RESPONSE,
  SuppressionRecord,
  suppressionQueryFields,
} from './suppressions.schemas.ts';

const SuppressionParams = strictObject({
  email: text(320, { minLength: 1, description: 'The address, percent-encoded.' }),
});

export const suppressionRoutes =
  ({
    suppressions,
    lists,
  }: {
    suppressions: SuppressionService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/suppressions',
      {
        config: { permission: 'suppressions:read' },
        schema: {
          operationId: 'suppressions.list',
          summary: 'List suppressed addresses',
          description:
            'A credential bound to an environment or inbox sees only the suppressions that originate there. An address may have one in each scope.',
          tags: ['Deliverability'],
          querystring: strictObject({ ...pageQuery, ...suppressionQueryFields }),
          response: { 200: listOf(ref(SuppressionRecord)), ...problems() },
        },
      },
      async (request) => {
        const { email, search, origin } = request.query;
        const page = await suppressions.list(request.scope, { email, search, origin }, lists.read(request));
        return lists.present(request, page, presentSuppression);
      },
    );

    app.post(
      '/suppressions',
      {
        config: { permission: 'suppressions:manage', ...SUPPRESSION_RESPONSE },
        schema: {
          operationId: 'suppressions.create',
          summary: 'Suppress an address',
          description:
            'Applies to the whole organization, or to the environment or inbox that the credential is bound to. Returns 200 and the existing suppression if the address is already suppressed there.',
          tags: ['Deliverability'],
          body: ref(CreateSuppression),
          response: { 200: ref(SuppressionRecord), 201: ref(SuppressionRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { suppression, created } = await suppressions.add(request.scope, request.body.email);
        reply.code(created ? 201 : 200);
        return presentSuppression(suppression);
      },
    );

    app.delete(
      '/suppressions/:email',
      {
        config: { permission: 'suppressions:manage' },
        schema: {
          operationId: 'suppressions.delete',
          summary: 'Remove a suppression',
          description:
            'A bound credential removes what lies within its environment or inbox, an organization-wide one every suppression of the address. A bounce or complaint applies to the whole organization: a bound credential gets 403.',
          tags: ['Deliverability'],
          params: SuppressionParams,
          querystring: strictObject({
            reason: Type.Optional(text(500, { minLength: 1, description: 'Why, for the audit log.' })),
          }),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async (request, reply) => {
        await suppressions.remove(request.scope, request.params.email, request.query.reason);
        return reply.code(204).send(null);
      },
    );
    done();
  };
