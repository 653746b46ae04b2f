import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { RequestService } from '../../domain/requests/request.service.ts';
import { type Lists, listOf } from '../lists.ts';
import { problems, ref } from '../schemas.ts';
import { parseTime } from '../time.ts';
import { presentRequest, RequestRecord, RequestsQuery } from './requests.schemas.ts';

export const requestRoutes =
  ({ requests, lists }: { requests: RequestService; lists: Lists }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/requests',
      {
        config: { permission: 'usage:read' },
        schema: {
          operationId: 'requests.list',
          summary: 'List the calls of the last seven days',
          description:
            'The calls of the organization with their status, error code and duration, without bodies. A call appears a second or two after its response; in a flood of calls, some are left out. A credential that is bound to an environment or inbox sees only its own calls.',
          tags: ['Usage'],
          querystring: RequestsQuery,
          response: { 200: listOf(ref(RequestRecord)), ...problems() },
        },
      },
      async (request) => {
        const { status, credential_id: credentialId, failed, path, since, until } = request.query;
        const filter = {
          status,
          credentialId,
          failed,
          path,
          since: since === undefined ? undefined : parseTime('/query/since', since),
          until: until === undefined ? undefined : parseTime('/query/until', until),
        };
        const page = await requests.list(request.scope, filter, lists.read(request));
        return lists.present(request, page, presentRequest);
      },
    );
    done();
  };
