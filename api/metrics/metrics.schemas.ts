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
import { strictObject, id, ref, text, timestamp } from '../schemas.ts';
import { parseTime } from '../time.ts';

const time = (description: string) => Type.String({ format: 'date-time', maxLength: 40, description });

const query = (days: number) =>
  strictObject({
    start: Type.Optional(
      time(`From the hour (UTC) of this time on; left out: 24 hours. At most ${days} days before end.`),
    ),
    end: Type.Optional(time('Up to this time, with the whole hour it lies in; left out: now.')),
    inbox_id: Type.Optional(id('Mail of this inbox alone.')),
    domain: Type.Optional(
      text(255, { minLength: 1, description: 'Mail of inboxes whose address is on this domain alone.' }),
    ),
  });

export const ActivityQuery = query(MAX_ACTIVITY_DAYS);
export const RangeQuery = query(MAX_SUMMARY_DAYS);

const count = (description: string) => Type.Integer({ minimum: 0, description });

const counts = {
  sent: count('Left: the relay took it for at least one recipient.'),
  delivered: count('Reported as delivered to at least one recipient.'),
  bounced: count('Bounced for at least one recipient, those that are suppressed among them.'),
  complained: count('Reported as spam by a recipient.'),
  rejected: count('Refused before delivery, also where no message came of it (422 message_rejected).'),
  received: count('Came in and was shown; hidden spam and blocked mail is not counted.'),
};

export const MetricsSummary = strictObject(counts, { $id: 'MetricsSummary', title: 'MetricsSummary' });

const ActivityHour = strictObject({ timestamp: timestamp('Beginning of the hour, UTC.'), ...counts });

export const MetricsActivity = strictObject(
  {
    data: Type.Array(ActivityHour, {
      // A range that begins and ends within an hour touches one more.
      maxItems: MAX_ACTIVITY_DAYS * 24 + 1,
      description: 'Every hour of the range, oldest first, those without mail as zeros.',
    }),
  },
  { $id: 'MetricsActivity', title: 'MetricsActivity' },
);

const rate = (description: string) => Type.Number({ minimum: 0, maximum: 1, description });

export const MetricsDeliverability = strictObject(
  {
    score: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 0,
      maximum: 100,
      description: '100: nothing bounced, nobody complained, nothing was refused. Null under 20 sends.',
    }),
    delivery_rate: rate('Share of the sends reported as delivered; 0 where the relay reports nothing.'),
    bounce_rate: rate('Share of the sends that bounced.'),
    complaint_rate: rate('Share of the sends that were reported as spam.'),
    rejection_rate: rate('Share refused before delivery of all that was to be sent.'),
    sample_size: count('Sends: what left, and what bounced before it could.'),
    warnings: Type.Array(text(256), {
      maxItems: 10,
      description: 'In words: which rate is over its threshold, or that there are too few sends.',
    }),
  },
  { $id: 'MetricsDeliverability', title: 'MetricsDeliverability' },
);

export const Metrics = strictObject(
  {
    activity: ref(MetricsActivity),
    deliverability: ref(MetricsDeliverability),
    summary: ref(MetricsSummary),
  },
  { $id: 'Metrics', title: 'Metrics', description: 'Of the last 24 hours.' },
);

/** @throws AppError `validation_error` for a time the calendar does not have. */
export function readFilter({ start, end, inbox_id, domain }: Static<typeof RangeQuery>): MetricFilter {
  return {
    start: start === undefined ? undefined : parseTime('/query/start', start),
    end: end === undefined ? undefined : parseTime('/query/end', end),
    inboxId: inbox_id,
    domain,
  };
}

export function presentSummary(summary: MetricCounts): Static<typeof MetricsSummary> {
  const { sent, delivered, bounced, complained, rejected, received } = summary;
  return { sent, delivered, bounced, complained, rejected, received };
}

export function presentActivity(hours: HourCounts[]): Static<typeof MetricsActivity> {
  return {
    data: hours.map((counted) => ({ timestamp: counted.hour.toISOString(), ...presentSummary(counted) })),
  };
}

export function presentDeliverability(judged: Deliverability): Static<typeof MetricsDeliverability> {
  return {
    score: judged.score,
    delivery_rate: judged.deliveryRate,
    bounce_rate: judged.bounceRate,
    complaint_rate: judged.complaintRate,
    rejection_rate: judged.rejectionRate,
    sample_size: judged.sampleSize,
    warnings: judged.warnings,
  };
}

export function presentOverview({
  activity,
  deliverability,
  summary,
}: MetricsOverview): Static<typeof Metrics> {
  return {
    activity: presentActivity(activity),
    deliverability: presentDeliverability(deliverability),
    summary: presentSummary(summary),
  };
}
