import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import {
  SUPPRESSION_ORIGINS,
  type SuppressionOrigin,
} from '../../domain/deliverability/suppression.entity.ts';
import type { SuppressionService } from '../../domain/deliverability/suppression.service.ts';
import type { MetricService } from '../../domain/metrics/metric.service.ts';
import {
  REFUSAL_DIRECTIONS,
  REFUSAL_REASONS,
  type RefusalDirection,
  type RefusalReason,
} from '../../domain/refusals/refusal.entity.ts';
import type { RefusalService } from '../../domain/refusals/refusal.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { listQuery, OptionalText } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import {
  describeSuppression,
  ORIGINS,
  RANGES,
  type Range,
  REFUSALS,
  STAGES,
  toChart,
} from './reputation-words.ts';
import { reputationTabs } from './tabs.ts';

export interface ReputationPageDependencies {
  pages: Pages;
  metrics: MetricService;
  suppressions: SuppressionService;
  refusals: RefusalService;
}

const PAGE_SIZE = { limit: 50 };
const DAY_MS = 86_400_000;
const choice = <Value extends string>(values: readonly Value[]) =>
  Type.Optional(enumOf(['', ...values] as ('' | Value)[]));

const SuppressionsQuery = listQuery({ search: OptionalText(320), origin: choice(SUPPRESSION_ORIGINS) });

/** An empty field of a filter. */
const orUndefined = <Value extends string>(value: '' | Value | undefined): Value | undefined =>
  value === '' ? undefined : value;

/** The deliverability score, suppressed addresses, and mail that was refused. The lists are in `lists.routes.ts`. */
export const reputationPages =
  ({ pages, metrics, suppressions, refusals }: ReputationPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/reputation',
      {
        config: { permission: 'metrics:read' },
        schema: {
          operationId: 'pages.reputation',
          querystring: listQuery({ range: Type.Optional(enumOf(Object.keys(RANGES) as Range[])) }),
        },
      },
      async (request, reply) => {
        const { scope, query } = request;
        const range = query.range ?? '7d';
        const { days } = RANGES[range];
        const start = new Date(Date.now() - days * DAY_MS);
        const [activity, deliverability] = await Promise.all([
          metrics.getActivity(scope, { start }),
          metrics.getDeliverability(scope, { start }),
        ]);
        return pages.send(request, reply, {
          template: 'reputation/score',
          title: 'Reputation',
          data: {
            tabs: reputationTabs(request, pages, 'score'),
            range,
            ranges: Object.entries(RANGES),
            deliverability,
            isQuiet: activity.every(({ attempted, rejected }) => attempted + rejected === 0),
            chart: toChart(activity, days === 1 ? 'hour' : 'day'),
          },
          apiCall: { path: '/metrics/deliverability', query: { start: start.toISOString() } },
        });
      },
    );

    async function showSuppressions(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { search, origin } = request.query as { search?: string; origin?: SuppressionOrigin | '' };
      const filter = { search: orUndefined(search?.trim()), origin: orUndefined(origin) };
      const page = await suppressions.list(request.scope, filter, pages.readPage(request, PAGE_SIZE));
      return pages.send(request, reply, {
        template: 'reputation/suppressions',
        title: 'Suppressed addresses',
        problem,
        data: {
          tabs: reputationTabs(request, pages, 'suppressions'),
          suppressions: page.items.map(describeSuppression),
          next: pages.nextPage(request, page),
          filter,
          origins: SUPPRESSION_ORIGINS.map((each) => [each, ORIGINS[each]]),
        },
        apiCall: { path: '/suppressions', query: filter },
      });
    }

    app.get(
      '/reputation/suppressions',
      {
        config: { permission: 'suppressions:read' },
        schema: {
          operationId: 'pages.suppressions',
          querystring: SuppressionsQuery,
        },
      },
      (request, reply) => showSuppressions(request, reply),
    );

    pages.form(app, '/reputation/suppressions', {
      config: { permission: 'suppressions:manage' },
      schema: { operationId: 'pages.addSuppression', body: strictObject({ email: text(320) }) },
      work: ({ scope, body }) => suppressions.add(scope, body.email.trim()),
      show: showSuppressions,
      done: (request, reply, { created }) =>
        pages.seeOther(
          reply,
          pages.link(request, '/reputation/suppressions'),
          created ? 'suppression-added' : 'suppression-exists',
        ),
    });

    pages.form(app, '/reputation/suppressions/lift', {
      config: { permission: 'suppressions:manage' },
      schema: {
        operationId: 'pages.liftSuppression',
        querystring: SuppressionsQuery,
        body: strictObject({ email: text(320), reason: text(500) }),
      },
      work: ({ scope, body: { email, reason } }) =>
        suppressions.remove(scope, email, orUndefined(reason.trim())),
      show: showSuppressions,
      done(request, reply) {
        const { search, origin } = request.query as Static<typeof SuppressionsQuery>;
        const path = pages.link(request, '/reputation/suppressions', { search, origin });
        return pages.seeOther(reply, path, 'suppression-lifted', request.body.email);
      },
    });

    app.get(
      '/reputation/refusals',
      {
        config: { permission: 'messages:read' },
        schema: {
          operationId: 'pages.refusals',
          querystring: listQuery({
            direction: choice(REFUSAL_DIRECTIONS),
            reason: choice(REFUSAL_REASONS),
            from: OptionalText(320),
            to: OptionalText(320),
          }),
        },
      },
      async (request, reply) => {
        const { query, scope } = request;
        const filter = {
          direction: orUndefined<RefusalDirection>(query.direction),
          reason: orUndefined<RefusalReason>(query.reason),
          from: orUndefined(query.from?.trim()),
          to: orUndefined(query.to?.trim()),
        };
        const page = await refusals.list(scope, filter, pages.readPage(request, PAGE_SIZE));
        return pages.send(request, reply, {
          template: 'reputation/refusals',
          title: 'Refused mail',
          data: {
            tabs: reputationTabs(request, pages, 'refusals'),
            refusals: page.items,
            next: pages.nextPage(request, page),
            filter,
            reasons: Object.entries(REFUSALS),
            texts: REFUSALS,
            stages: STAGES,
          },
          apiCall: { path: '/refusals', query: filter },
        });
      },
    );
    done();
  };
