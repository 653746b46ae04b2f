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
  MinimalLimits,
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
/** Exempt from the API call limit, so that a client over it can still read usage and raise its own limit. */
const READ_CONFIG = { permission: 'usage:read', exemptFromUsageLimit: true } as const;
const CHANGE_CONFIG = {
  permission: 'usage:manage',
  readPermission: 'usage:read',
  minimalResponse: MinimalLimits,
  exemptFromUsageLimit: true,
} as const;

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
        config: READ_CONFIG,
        schema: {
          operationId: 'usage.get',
          summary: 'Get the organization’s usage this month',
          tags: ['Usage'],
          response: { 200: ref(UsageRecord), ...problems() },
        },
      },
      async (request) => presentUsage(await usage.getCurrent(request.scope)),
    );

    app.get(
      '/org/usage/history',
      {
        config: READ_CONFIG,
        schema: {
          operationId: 'usage.getHistory',
          summary: 'Get daily usage',
          description:
            'At most 366 days (UTC), including days without usage. storage_bytes is the value at the end of each day.',
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
        config: READ_CONFIG,
        schema: {
          operationId: 'usage.listEvents',
          summary: 'List usage events',
          description:
            'Crossed thresholds, changes of tier, overrides and own limits, closed months, and the hourly change of each counter.',
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
        config: READ_CONFIG,
        schema: {
          operationId: 'usage.getLimits',
          summary: 'Get the organization’s limits',
          tags: ['Usage'],
          response: { 200: ref(LimitsRecord), ...problems() },
        },
      },
      async (request) => presentLimits(await limits.get(request.scope)),
    );

    app.put(
      '/org/limits',
      {
        config: CHANGE_CONFIG,
        schema: {
          operationId: 'usage.setLimits',
          summary: 'Set own limits and warning thresholds',
          description: 'An own limit is hard and cannot exceed what the organization is allowed.',
          tags: ['Usage'],
          body: ref(SetLimits),
          response: { 200: ref(LimitsRecord), ...changeProblems(422) },
        },
      },
      async ({ scope, body }) => presentLimits(await limits.setCustom(scope, readCustomLimits(body))),
    );
    done();
  };
