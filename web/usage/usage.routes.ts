import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { BillingService } from '../../domain/billing/billing.service.ts';
import type { SendAllowanceService } from '../../domain/deliverability/send-allowance.service.ts';
import { isOrganizationWide } from '../../domain/identity/scope.ts';
import { TIERS, type Tier } from '../../domain/organizations/tier.ts';
import type { UpgradeRequestService } from '../../domain/upgrade-requests/upgrade-request.service.ts';
import { USAGE_COUNTERS, type UsageCounter } from '../../domain/usage/counters.ts';
import type { EffectiveLimit } from '../../domain/usage/effective-limit.ts';
import type { LimitService } from '../../domain/usage/limit.service.ts';
import type { UsageService } from '../../domain/usage/usage.service.ts';
import type { DailyUsage } from '../../domain/usage/usage-history.ts';
import type { AppError } from '../../platform/errors.ts';
import { listQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { GRAPHS, type Graph, SOURCES, WORDS } from './counters.ts';
import { LimitForm, limitFields, readLimitForm } from './limit-form.ts';

const DAY_MS = 86_400_000;
const DAYS = ['7', '30', '90'] as const;
const UPGRADES = { limit: 5, order: 'desc' } as const;

const UsageQuery = listQuery({
  graph: Type.Optional(enumOf(Object.keys(GRAPHS) as Graph[])),
  days: Type.Optional(enumOf(DAYS)),
});

export interface UsagePageDependencies {
  pages: Pages;
  usage: UsageService;
  limits: LimitService;
  sendAllowances: SendAllowanceService;
  upgradeRequests: UpgradeRequestService;
  billing: BillingService | undefined;
}

/** What the organization uses and may use: this month, today, and in the past; its own limits, and requests for more. */
export const usagePages =
  (dependencies: UsagePageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, usage, limits, sendAllowances, upgradeRequests, billing } = dependencies;

    async function show(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { scope } = request;
      const { graph = 'mail', days = '30' } = request.query as { graph?: Graph; days?: string };
      const end = new Date();
      const [{ period }, all, history, allowance] = await Promise.all([
        usage.getCurrent(scope),
        limits.get(scope),
        usage.getHistory(scope, new Date(end.getTime() - (Number(days) - 1) * DAY_MS), end),
        sendAllowances.get(scope),
      ]);
      const mayAsk = scope.permissions.has('billing:manage') && isOrganizationWide(scope);
      return pages.send(request, reply, {
        template: 'usage/usage',
        title: 'Usage',
        problem,
        data: {
          tier: all.tier,
          tiers: TIERS.filter((tier) => tier !== all.tier),
          period,
          counters: [
            ...inOrder(all.counters).map(({ counter, current, limit, warningPercent }) => ({
              ...describe(counter, current, limit),
              warningPercent,
            })),
            ...all.resources.map(({ resource, current, limit }) => describe(resource, current, limit)),
          ],
          allowance,
          graph,
          days,
          graphs: Object.entries(GRAPHS).map(([key, { name }]) => [key, name]),
          daysChoices: DAYS,
          chartKind: GRAPHS[graph].kind,
          chart: chartOf(graph, history, days),
          limitFields: inOrder(limitFields(all)),
          words: WORDS,
          hasBilling: billing !== undefined,
          upgrades: mayAsk ? (await upgradeRequests.list(scope, UPGRADES)).items : undefined,
        },
        apiCall: { path: '/org/usage' },
      });
    }

    app.get(
      '/usage',
      {
        config: { permission: 'usage:read' },
        schema: { operationId: 'pages.usage', querystring: UsageQuery },
      },
      async (request, reply) => show(request, reply),
    );

    pages.form(app, '/usage/limits', {
      config: { permission: 'usage:manage' },
      schema: { operationId: 'pages.setLimits', body: LimitForm },
      work: async ({ scope, body }) => limits.setCustom(scope, readLimitForm(body, await limits.get(scope))),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/usage'), 'limits-changed'),
    });

    pages.form(app, '/usage/upgrade', {
      config: { permission: 'billing:manage' },
      schema: {
        operationId: 'pages.requestUpgrade',
        body: strictObject({ tier: enumOf(TIERS), note: text(1_000, { minLength: 1, pattern: '\\S' }) }),
      },
      work: ({ scope, body }) => upgradeRequests.create(scope, body as { tier: Tier; note: string }),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/usage'), 'upgrade-requested'),
    });
    done();
  };

/** As everywhere: what is sent comes first. */
const inOrder = <Counted extends { counter: UsageCounter }>(counters: readonly Counted[]): Counted[] =>
  USAGE_COUNTERS.flatMap((name) => counters.filter(({ counter }) => counter === name));

const describe = (resource: keyof typeof WORDS, current: number, limit: EffectiveLimit) => ({
  ...WORDS[resource],
  resource,
  isStorage: resource === 'storage_bytes',
  current,
  limit: limit.limit,
  isHard: limit.enforcedLimit !== null,
  source: SOURCES[limit.source],
});

const chartOf = (graph: Graph, history: DailyUsage[], days: string) => ({
  label: `${GRAPHS[graph].name}, the last ${days} days`,
  points: history.map(({ date, amounts }) => ({ at: new Date(date), values: amounts })),
  series: GRAPHS[graph].series,
  unit: 'day' as const,
});
