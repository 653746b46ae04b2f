import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { enumOf } from '../../api/schemas.ts';
import type { ApiKeyService } from '../../domain/api-keys/api-key.service.ts';
import type { RequestService } from '../../domain/requests/request.service.ts';
import { timeOfId } from '../../platform/ids.ts';
import { listQuery, OptionalText } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { whatToDo } from './what-to-do.ts';

const PAGE_SIZE = 50;
const HOUR_MS = 3_600_000;
/** How far back a person looks; the API keeps seven days. */
const PERIODS = { hour: ['The last hour', HOUR_MS], day: ['The last day', 24 * HOUR_MS] } as const;
const KEPT = 'The last 7 days';

/** The calls of the API: what was called, by whom, how it ended, and what to do about a failure. */
export const requestPages =
  ({
    pages,
    requests,
    apiKeys,
  }: {
    pages: Pages;
    requests: RequestService;
    apiKeys: ApiKeyService;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/requests',
      {
        config: { permission: 'usage:read' },
        schema: {
          operationId: 'pages.requests',
          querystring: listQuery({
            result: Type.Optional(enumOf(['', 'failed'])),
            status: Type.Optional(Type.Unsafe<string>({ type: 'string', pattern: '^([1-5]\\d\\d)?$' })),
            path: OptionalText(200),
            credential: OptionalText(64),
            period: Type.Optional(enumOf(['', 'hour', 'day'])),
          }),
        },
      },
      async (request, reply) => {
        const { result, status, path, credential, period } = request.query;
        const filter = {
          failed: result === 'failed' || undefined,
          status: status ? Number(status) : undefined,
          path: path?.trim() || undefined,
          credentialId: credential?.trim() || undefined,
          since: period ? new Date(Date.now() - PERIODS[period][1]) : undefined,
        };
        const page = await requests.list(
          request.scope,
          filter,
          pages.readPage(request, { limit: PAGE_SIZE }),
        );
        const managed = request.scope.permissions.has('keys:manage')
          ? await apiKeys.findManaged(request.scope, keysIn(page.items))
          : new Set();
        const name = page.items.find(
          ({ credentialId }) => credentialId === filter.credentialId,
        )?.credentialName;
        return pages.send(request, reply, {
          template: 'requests/requests',
          title: 'Requests',
          data: {
            requests: page.items.map((item) => ({
              ...item,
              at: timeOfId(item.id),
              hasPage: managed.has(item.credentialId),
              hasFailed: item.status >= 400,
              remedy: item.status >= 400 ? whatToDo(item.code, item.status) : undefined,
            })),
            filter: { result, status, path, credential, period },
            credentialName: name,
            isFiltered: Object.values(filter).some((value) => value !== undefined),
            periods: [['', KEPT], ...Object.entries(PERIODS).map(([key, [text]]) => [key, text])],
            next: pages.nextPage(request, page),
          },
          apiCall: {
            path: '/requests',
            query: {
              limit: PAGE_SIZE,
              status: filter.status,
              failed: filter.failed,
              path: filter.path,
              credential_id: filter.credentialId,
              since: filter.since?.toISOString(),
            },
          },
        });
      },
    );
    done();
  };

const keysIn = (calls: readonly { credentialKind: string; credentialId: string }[]): string[] => [
  ...new Set(
    calls
      .filter(({ credentialKind }) => credentialKind === 'api_key')
      .map(({ credentialId }) => credentialId),
  ),
];
