import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { LimitService } from '../../domain/usage/limit.service.ts';
import type { UsageService } from '../../domain/usage/usage.service.ts';
import { type Lists, listOf } from '../lists.ts';
import { changeProblems, problems, ref } from '../schemas.ts';
import { parseDay } from '../time.ts';
import {
  HistoryQuery,
  LedgerQuery,
  LimitsRecord,
  presentHistory,
  presentLedgerEntry,
  presentLimits,
  presentUsage,
  readCustomLimits,
  SetLimits,
  UsageEventRecord,
  UsageHistory,
  UsageRecord,
} from './usage.schemas.ts';

const DAY_MS = 86_400_000;
/** Whoever has used up what it may call still has to see why, and to raise its cap. */
const READING = { permission: 'usage:read', exemptFromUsageLimit: true } as const;
const CHANGING = { permission: 'usage:manage', exemptFromUsageLimit: true } as const;

export const usageRoutes =
  ({
    usage,
    limits,
    lists,
  }: {
    usage: UsageService;
    limits: LimitService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/org/usage',
      {
        config: READING,
        schema: {
          operationId: 'usage.get',
          summary: 'Read what the organization has used this month',
          tags: ['Usage'],
          response: { 200: ref(UsageRecord), ...problems() },
        },
      },
      async (request) => presentUsage(await usage.getCurrent(request.scope)),
    );

    app.get(
      '/org/usage/history',
      {
        config: READING,
        schema: {
          operationId: 'usage.getHistory',
          summary: 'Read what was used day by day',
          description: 'At most 366 days (UTC), the empty ones as zeros; storage_bytes as it was at the end.',
          tags: ['Usage'],
          querystring: HistoryQuery,
          response: { 200: ref(UsageHistory), ...problems() },
        },
      },
      async ({ scope, query }) => {
        const end = query.end === undefined ? new Date() : parseDay('/query/end', query.end);
        const start =
          query.start === undefined
            ? new Date(end.getTime() - 30 * DAY_MS)
            : parseDay('/query/start', query.start);
        return presentHistory(await usage.getHistory(scope, start, end));
      },
    );

    app.get(
      '/org/usage/events',
      {
        config: READING,
        schema: {
          operationId: 'usage.listEvents',
          summary: 'List what moved counters and limits',
          description:
            'Thresholds crossed, changes of tier, override and own limits, closed months, and what each counter moved by in each hour.',
          tags: ['Usage'],
          querystring: LedgerQuery,
          response: { 200: listOf(ref(UsageEventRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await usage.listLedger(request.scope, { kind: request.query.type }, lists.read(request));
        return lists.present(request, page, presentLedgerEntry);
      },
    );

    app.get(
      '/org/limits',
      {
        config: READING,
        schema: {
          operationId: 'usage.getLimits',
          summary: 'Read the limits of the organization',
          tags: ['Usage'],
          response: { 200: ref(LimitsRecord), ...problems() },
        },
      },
      async (request) => presentLimits(await limits.read(request.scope)),
    );

    app.put(
      '/org/limits',
      {
        config: CHANGING,
        schema: {
          operationId: 'usage.setLimits',
          summary: 'Set caps of your own, and when to be warned',
          description: 'A cap of your own is hard, and never above what the organization is allowed.',
          tags: ['Usage'],
          body: ref(SetLimits),
          response: { 200: ref(LimitsRecord), ...changeProblems(422) },
        },
      },
      async ({ scope, body }) => presentLimits(await limits.setCustom(scope, readCustomLimits(body))),
    );
    done();
  };
