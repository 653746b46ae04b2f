import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { OpenResponses } from '../../api/plugins/open-responses.ts';
import type {
  BillingAdministrationService,
  SubscriptionProblem,
} from '../../domain/billing/billing-administration.service.ts';
import type { StaffScope } from '../../domain/staff/staff-scope.ts';
import type { ToggleService } from '../../domain/toggles/toggle.service.ts';
import type { UpgradeDecisionService } from '../../domain/upgrade-requests/upgrade-decision.service.ts';
import type { RunFilter } from '../../domain/workflow-runs/list-runs.ts';
import type { WorkflowRunService } from '../../domain/workflow-runs/workflow-run.service.ts';
import { AppError } from '../../platform/errors.ts';
import { formatTime } from '../shell/formats.ts';
import type { Pages } from '../shell/pages.ts';
import { type Console, NoticeQuery } from './console.ts';
import { sendLive } from './live.ts';

export interface OverviewConsoleDependencies {
  console: Console;
  pages: Pages;
  openResponses: OpenResponses;
  workflowRuns: WorkflowRunService;
  upgradeDecisions: UpgradeDecisionService;
  toggles: ToggleService;
  /** Undefined if the service does not use billing. */
  billingAdministration: BillingAdministrationService | undefined;
  /** Interval between two updates of the page. */
  liveIntervalMs?: number;
}

const LIVE_INTERVAL_MS = 5_000;
/** More are shown as `25+`. */
const MAX_COUNTED = 25;

/** What needs a person, at a glance, and live. */
export const overviewConsole =
  (dependencies: OverviewConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { console, pages, openResponses, liveIntervalMs = LIVE_INTERVAL_MS } = dependencies;
    let latest: { readAt: number; overview: Promise<Overview> } | undefined;
    /** All open pages of this process share one reading for an interval: it looks up every run that it counts. */
    const read = (staff: StaffScope): Promise<Overview> => {
      if (!latest || Date.now() - latest.readAt >= liveIntervalMs)
        latest = { readAt: Date.now(), overview: readOverview(dependencies, staff) };
      return latest.overview;
    };

    app.get(
      '/admin',
      {
        config: { staff: 'support' },
        schema: { operationId: 'console.overview', querystring: NoticeQuery },
      },
      async (request, reply) =>
        console.send(request, reply, {
          template: 'staff/overview',
          title: 'Overview',
          log: {},
          data: { overview: await read(request.staff) },
        }),
    );

    app.get(
      '/admin/live',
      {
        // A HEAD request would hold the connection open without any data.
        exposeHeadRoute: false,
        config: { staff: 'support' },
        schema: { operationId: 'console.live' },
      },
      async (request, reply) =>
        sendLive(request, reply, {
          signal: openResponses.admit(request, reply),
          intervalMs: liveIntervalMs,
          render: async () =>
            pages.part(request, 'staff/overview-figures', {
              overview: await read(request.staff),
              time: formatTime,
            }),
        }),
    );
    done();
  };

interface Overview {
  /** Null: Temporal does not respond. */
  needsAttention: string | null;
  failing: string | null;
  upgradeRequests: string;
  toggledOff: string[];
  subscriptionProblems: SubscriptionProblem[];
}

async function readOverview(
  { workflowRuns, upgradeDecisions, toggles, billingAdministration }: OverviewConsoleDependencies,
  staff: StaffScope,
): Promise<Overview> {
  const count = async (filter: Pick<RunFilter, 'stage' | 'failing'>) => {
    try {
      const { items, next } = await workflowRuns.list(
        { status: 'running', ...filter },
        { limit: MAX_COUNTED },
      );
      return countOf(items, next !== null);
    } catch (error) {
      if (error instanceof AppError && error.code === 'unavailable') return null;
      throw error;
    }
  };
  const requests = await upgradeDecisions.list(
    staff,
    { status: 'open' },
    { limit: MAX_COUNTED, order: 'desc' },
  );
  const states = await toggles.list(staff);
  return {
    needsAttention: await count({ stage: 'needs_attention', failing: false }),
    failing: await count({ failing: true }),
    upgradeRequests: countOf(requests.items, requests.next !== null),
    subscriptionProblems: (await billingAdministration?.listProblems(staff)) ?? [],
    toggledOff: states.filter(({ enabled }) => !enabled).map(({ name }) => name),
  };
}

const countOf = (items: readonly unknown[], hasMore: boolean): string =>
  hasMore ? `${items.length}+` : String(items.length);
