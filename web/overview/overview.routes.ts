import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { BrowserSession } from '../../api/plugins/browser-session.ts';
import { enumOf } from '../../api/schemas.ts';
import { MAX_COUNTED, type Overview, type OverviewService } from '../../domain/overview/overview.service.ts';
import { listQuery, OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import type { FirstKey } from './first-key.ts';

export interface OverviewPageDependencies {
  pages: Pages;
  overview: OverviewService;
  browserSession: BrowserSession;
  firstKey: FirstKey;
  config: { PUBLIC_URL: string };
}

/** Ranges of the graph. */
const RANGES = { '24h': 1, '7d': 7 } as const;
type Range = keyof typeof RANGES;

/** The first page of the console: what was sent and received, what waits for a person, and the first steps. */
export const overviewPages =
  (dependencies: OverviewPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, overview, browserSession, firstKey, config } = dependencies;

    app.get(
      '/',
      { config: { public: true }, schema: { operationId: 'pages.home', querystring: OrganizationQuery } },
      async (request, reply) =>
        pages.seeOther(reply, browserSession.read(request) === undefined ? '/login' : '/overview'),
    );

    app.get(
      '/overview',
      {
        config: { permission: 'usage:read' },
        schema: {
          operationId: 'pages.overview',
          querystring: listQuery({ range: Type.Optional(enumOf(['', ...Object.keys(RANGES)])) }),
        },
      },
      async (request, reply) => {
        const range: Range = request.query.range === '7d' ? '7d' : '24h';
        const found = await overview.get(request.scope, { days: RANGES[range] });
        const [start] = found.metrics?.activity ?? [];
        return pages.send(request, reply, {
          template: 'overview/overview',
          title: 'Overview',
          data: {
            ...found,
            firstKey: firstKey.take(request, reply),
            range,
            days: RANGES[range],
            waiting: describeWaiting(found.waiting),
            stepsDone: Object.values(found.steps).filter(Boolean).length,
            api: `${config.PUBLIC_URL}/api/v1`,
          },
          apiCall:
            range === '24h'
              ? { path: '/metrics' }
              : { path: '/metrics/activity', query: { start: start?.hour.toISOString() } },
        });
      },
    );
    done();
  };

/** Each number with its list, without those that the person may not see. */
function describeWaiting({
  approvals,
  needsAttention,
  failingEndpoints,
  unverifiedDomains,
  alarms,
}: Overview['waiting']) {
  const all = [
    { name: 'Approvals', count: approvals, path: '/approvals', query: {}, tone: 'warn' },
    {
      name: 'Messages that need attention',
      count: needsAttention,
      path: '/messages',
      query: { status: 'needs_attention' },
      tone: 'bad',
    },
    {
      name: 'Failing webhook endpoints',
      count: failingEndpoints,
      path: '/webhooks',
      query: { state: 'failing' },
      tone: 'bad',
    },
    {
      name: 'Domains not verified',
      count: unverifiedDomains,
      path: '/domains',
      query: { state: 'unverified' },
      tone: 'warn',
    },
    { name: 'Injection alarms', count: alarms, path: '#alarms', query: {}, tone: 'bad' },
  ];
  return all
    .filter(({ count }) => count !== null)
    .map(({ count, ...each }) => ({
      ...each,
      isClear: count === 0,
      count: (count ?? 0) > MAX_COUNTED ? `${MAX_COUNTED}+` : String(count),
    }));
}
