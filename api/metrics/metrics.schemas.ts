import { type Static, Type } from 'typebox';
import type { Deliverability } from '../../domain/metrics/deliverability-score.ts';
import {
  type HourCounts,
  MAX_ACTIVITY_DAYS,
  MAX_SUMMARY_DAYS,
  type MetricFilter,
  type MetricsOverview,
} from '../../domain/metrics/metric.service.ts';
import type { MetricCounts } from '../../domain/metrics/metric-counts.ts';
import { id, ref, resource, strictObject, text, timestamp } from '../schemas.ts';
import { parseTimeOrDay } from '../time.ts';

const TIME_OR_DAY =
  '^\\d{4}-\\d{2}-\\d{2}([Tt]\\d{2}:\\d{2}:\\d{2}([.]\\d{1,9})?([Zz]|[+-]\\d{2}:?\\d{2}))?$';
const time = (description: string) =>
  text(40, {
    pattern: TIME_OR_DAY,
    description: `${description} A time, or a date such as 2026-11-22 (UTC).`,
  });

const query = (days: number) =>
  strictObject({
    start: Type.Optional(
      time(
        `Start of the range, rounded down to the hour (UTC). Default: 24 hours before end. At most ${days} days before end.`,
      ),
    ),
    end: Type.Optional(
      time('End of the range, rounded up to the hour; a date is included to its end. Default: now.'),
    ),
    inbox_id: Type.Optional(id('Only messages of this inbox.')),
    domain: Type.Optional(
      text(255, { minLength: 1, description: 'Only messages of inboxes with an address on this domain.' }),
    ),
  });

export const ActivityQuery = query(MAX_ACTIVITY_DAYS);
export const RangeQuery = query(MAX_SUMMARY_DAYS);

const count = (description: string) => Type.Integer({ minimum: 0, description });

const counts = {
  sent: count('Accepted by the relay for at least one recipient.'),
  delivered: count('Reported as delivered to at least one recipient.'),
  bounced: count('Bounced for at least one recipient, including suppressed recipients.'),
  complained: count('Reported as spam by a recipient.'),
  rejected: count(
    'Rejected before delivery, including calls that created no message (422 message_rejected).',
  ),
  received: count('Received and visible; hidden spam and blocked messages are not counted.'),
};

export const MetricsSummary = resource('metrics_summary', counts, {
  $id: 'MetricsSummary',
  title: 'MetricsSummary',
});

const ActivityHour = strictObject({ timestamp: timestamp('Start of the hour (UTC).'), ...counts });

export const MetricsActivity = resource(
  'metrics_activity',
  {
    data: Type.Array(ActivityHour, {
      // A range that starts and ends within an hour covers one more hour.
      maxItems: MAX_ACTIVITY_DAYS * 24 + 1,
      description: 'Every hour of the range, oldest first, including hours without messages.',
    }),
  },
  { $id: 'MetricsActivity', title: 'MetricsActivity' },
);

const rate = (description: string) => Type.Number({ minimum: 0, maximum: 1, description });

export const MetricsDeliverability = resource(
  'metrics_deliverability',
  {
    score: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 0,
      maximum: 100,
      description: '100: no bounces, complaints or rejections. Null for fewer than 20 sends.',
    }),
    delivery_rate: rate('Share of sends reported as delivered; 0 if the relay does not report delivery.'),
    bounce_rate: rate('Share of sends that bounced.'),
    complaint_rate: rate('Share of sends reported as spam.'),
    rejection_rate: rate('Share of all attempted sends that were rejected before delivery.'),
    sample_size: count('Number of sends: messages that were sent or bounced.'),
    warnings: Type.Array(text(256), {
      maxItems: 10,
      description:
        'States which rates are at or above a threshold, or that there are too few sends for a score.',
    }),
  },
  { $id: 'MetricsDeliverability', title: 'MetricsDeliverability' },
);

export const Metrics = resource(
  'metrics',
  {
    activity: ref(MetricsActivity),
    deliverability: ref(MetricsDeliverability),
    summary: ref(MetricsSummary),
  },
  { $id: 'Metrics', title: 'Metrics', description: 'Metrics of the last 24 hours.' },
);

/** @throws AppError `validation_error` for a date that does not exist. */
export function readFilter({ start, end, inbox_id, domain }: Static<typeof RangeQuery>): MetricFilter {
  return {
    start: start === undefined ? undefined : parseTimeOrDay('/query/start', start, 'start'),
    end: end === undefined ? undefined : parseTimeOrDay('/query/end', end, 'end'),
    inboxId: inbox_id,
    domain,
  };
}

export function presentSummary(summary: MetricCounts): Static<typeof MetricsSummary> {
  return { object: 'metrics_summary', ...presentCounts(summary) };
}

function presentCounts({ sent, delivered, bounced, complained, rejected, received }: MetricCounts) {
  return { sent, delivered, bounced, complained, rejected, received };
}

export function presentActivity(hours: HourCounts[]): Static<typeof MetricsActivity> {
  return {
    object: 'metrics_activity',
    data: hours.map((counted) => ({ timestamp: counted.hour.toISOString(), ...presentCounts(counted) })),
  };
}

export function presentDeliverability(result: Deliverability): Static<typeof MetricsDeliverability> {
  return {
    object: 'metrics_deliverability',
    score: result.score,
    delivery_rate: result.deliveryRate,
    bounce_rate: result.bounceRate,
    complaint_rate: result.complaintRate,
    rejection_rate: result.rejectionRate,
    sample_size: result.sampleSize,
    warnings: result.warnings,
  };
}

export function presentOverview({
  activity,
  deliverability,
  summary,
}: MetricsOverview): Static<typeof Metrics> {
  return {
    object: 'metrics',
    activity: presentActivity(activity),
    deliverability: presentDeliverability(deliverability),
    summary: presentSummary(summary),
  };
}
