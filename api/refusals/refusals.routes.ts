import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { RefusalService } from '../../domain/refusals/refusal.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { problems, ref, strictObject } from '../schemas.ts';
import { presentRefusal, RefusalRecord, refusalQueryFields } from './refusals.schemas.ts';

export const refusalRoutes =
  ({ refusals, lists }: { refusals: RefusalService; lists: Lists }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/refusals',
      {
        config: { permission: 'messages:read' },
        schema: {
          operationId: 'refusals.list',
          summary: 'List refused mail',
          description:
            'Why a message did not arrive: mail to an inbox or to a verified domain of the organization that was refused over SMTP, and refused logins and messages of email clients. Kept for 30 days. Equal refusals of an hour are one item with a count; beyond 200 items an hour the rest is one item for each reason, without addresses. An item appears a few seconds after the refusal. A credential bound to an environment or inbox sees only what belongs to it.',
          tags: ['Messages'],
          querystring: strictObject({ ...pageQuery, ...refusalQueryFields }),
          response: { 200: listOf(ref(RefusalRecord)), ...problems() },
        },
      },
      async (request) => {
        const { inbox_id, direction, reason, from, to } = request.query;
        const filter = { inboxId: inbox_id, direction, reason, from, to };
        const page = await refusals.list(request.scope, filter, lists.read(request));
        return lists.present(request, page, presentRefusal);
      },
    );
    done();
  };
