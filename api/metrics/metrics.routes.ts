import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { MetricService } from '../../domain/metrics/metric.service.ts';
import { problems, ref } from '../schemas.ts';
import {
  ActivityQuery,
  Metrics,
  MetricsActivity,
  MetricsDeliverability,
  MetricsSummary,
  presentActivity,
  presentDeliverability,
  presentOverview,
  presentSummary,
  RangeQuery,
  readFilter,
} from './metrics.schemas.ts';

export const metricRoutes =
  ({ metrics }: { metrics: MetricService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/metrics/activity',
      {
        config: { permission: 'metrics:read' },
        schema: {
          operationId: 'metrics.getActivity',
          summary: 'Get message counts by hour',
          tags: ['Metrics'],
          querystring: ActivityQuery,
          response: { 200: ref(MetricsActivity), ...problems(422) },
        },
      },
      async ({ scope, query }) => presentActivity(await metrics.getActivity(scope, readFilter(query))),
    );

    app.get(
      '/metrics/deliverability',
      {
        config: { permission: 'metrics:read' },
        schema: {
          operationId: 'metrics.getDeliverability',
          summary: 'Get the deliverability score and its rates',
          tags: ['Metrics'],
          querystring: RangeQuery,
          response: { 200: ref(MetricsDeliverability), ...problems(422) },
        },
      },
      async ({ scope, query }) =>
        presentDeliverability(await metrics.getDeliverability(scope, readFilter(query))),
    );

    app.get(
      '/metrics/summary',
      {
        config: { permission: 'metrics:read' },
        schema: {
          operationId: 'metrics.getSummary',
          summary: 'Get message counts for a time range',
          tags: ['Metrics'],
          querystring: RangeQuery,
          response: { 200: ref(MetricsSummary), ...problems(422) },
        },
      },
      async ({ scope, query }) => presentSummary(await metrics.getSummary(scope, readFilter(query))),
    );

    app.get(
      '/metrics',
      {
        config: { permission: 'metrics:read' },
        schema: {
          operationId: 'metrics.get',
          summary: 'Get activity, deliverability and summary of the last 24 hours',
          tags: ['Metrics'],
          response: { 200: ref(Metrics), ...problems() },
        },
      },
      async ({ scope }) => presentOverview(await metrics.getOverview(scope)),
    );
    done();
  };
