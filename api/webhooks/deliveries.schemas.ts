import { type Static, Type } from 'typebox';
import { EVENT_TYPES } from '../../domain/events/event-types.ts';
import type { BulkJob } from '../../domain/webhooks/bulk-job.entity.ts';
import { DELIVERY_STATUSES } from '../../domain/webhooks/delivery.entity.ts';
import type { DeliveryAttempt } from '../../domain/webhooks/delivery-attempt.entity.ts';
import type { DeliveryDetails } from '../../domain/webhooks/delivery-control.service.ts';
import { pageQuery } from '../lists.ts';
import { enumOf, id, nullableText, nullableTimestamp, strictObject, timestamp } from '../schemas.ts';

/** The error of an attempt is ours; what a receiver answered is kept up to 4 KiB. */
const MAX_ERROR_LENGTH = 4_096;
const MAX_RESPONSE_BODY_LENGTH = 4_096;
const nullableInteger = (description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], description });

const summaryFields = {
  id: id('Delivery id (whd_…).'),
  endpoint_id: id('Endpoint it goes to.'),
  event_id: id('Event it carries; receivers deduplicate by it.'),
  event_type: enumOf(EVENT_TYPES),
  test: Type.Boolean({ description: 'Carries a test event.' }),
  status: enumOf(DELIVERY_STATUSES, {
    description:
      'pending: on its way or waiting for the next attempt. held: waits, held_for says what for. exhausted: every attempt failed. blocked: the URL leads where nothing is sent.',
  }),
  held_for: Type.Unsafe<'endpoint_disabled' | 'usage_limit' | null>({
    type: ['string', 'null'],
    enum: ['endpoint_disabled', 'usage_limit', null],
    description:
      'endpoint_disabled: until the endpoint is enabled. usage_limit: until the month, the tier or a limit changes. Null unless held.',
  }),
  attempt_count: Type.Integer({ minimum: 0 }),
  next_attempt_at: nullableTimestamp('Null unless pending.'),
  last_status_code: nullableInteger('Of the last answer; null where none came.'),
  last_error: nullableText(MAX_ERROR_LENGTH, {
    description: 'Why the last attempt failed, or nothing more follows.',
  }),
  created_at: timestamp(),
  completed_at: nullableTimestamp('Null while it is pending or held.'),
};

/** A delivery in a list: without its attempts. */
export const DeliverySummary = strictObject(summaryFields, {
  $id: 'WebhookDeliverySummary',
  title: 'WebhookDeliverySummary',
});

export const DeliveryRecord = strictObject(
  {
    ...summaryFields,
    attempts: Type.Array(
      strictObject({
        number: Type.Integer({ minimum: 1 }),
        started_at: timestamp(),
        finished_at: nullableTimestamp('Null while it is under way, or where a crash cut it short.'),
        duration_ms: nullableInteger('Until the answer was read, or the attempt failed.'),
        status_code: nullableInteger('Null where no answer came.'),
        response_body: nullableText(MAX_RESPONSE_BODY_LENGTH, {
          description: 'The first 4 KiB of the answer.',
        }),
        error: nullableText(MAX_ERROR_LENGTH, { description: 'Null where it arrived.' }),
      }),
      { maxItems: 10_000, description: 'The first one first, those of earlier retries and replays too.' },
    ),
  },
  { $id: 'WebhookDelivery', title: 'WebhookDelivery' },
);

export const DeliveryQuery = strictObject({
  ...pageQuery,
  status: Type.Optional(enumOf(DELIVERY_STATUSES)),
  event_type: Type.Optional(enumOf(EVENT_TYPES)),
});

export const RotateSecret = strictObject(
  {
    overlap_seconds: Type.Integer({
      minimum: 0,
      maximum: 604_800,
      default: 86_400,
      description: 'How long deliveries are signed with the old secret as well. 0: not at all.',
    }),
  },
  { $id: 'RotateWebhookSecret', title: 'RotateWebhookSecret' },
);

export const SendTestEvent = strictObject(
  {
    event_type: Type.Optional(
      enumOf(EVENT_TYPES, { description: 'Empty: the first the endpoint subscribes to.' }),
    ),
  },
  { $id: 'SendTestEvent', title: 'SendTestEvent' },
);

const requiredTime = (description: string) =>
  Type.String({ format: 'date-time', maxLength: 40, description });

export const ReplayEvents = strictObject(
  {
    since: requiredTime('Events recorded at or after this time.'),
    until: Type.Optional(requiredTime('Events recorded before this time. Empty: until now.')),
    event_types: Type.Optional(
      Type.Array(enumOf(EVENT_TYPES), {
        minItems: 1,
        maxItems: EVENT_TYPES.length,
        uniqueItems: true,
        description: 'Empty: those the endpoint subscribes to.',
      }),
    ),
    only_failed: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Only what did not arrive: exhausted, blocked or canceled.',
      }),
    ),
  },
  { $id: 'ReplayEvents', title: 'ReplayEvents' },
);

export const BulkJobRecord = strictObject(
  {
    id: id('Job id (whj_…).'),
    endpoint_id: id('Endpoint it is about.'),
    kind: enumOf(['replay', 'cancel']),
    status: enumOf(['running', 'completed', 'stopped']),
    detail: nullableText(1024, { description: 'Why it was stopped; null otherwise.' }),
    since: nullableTimestamp(),
    until: timestamp(),
    event_types: Type.Unsafe<(typeof EVENT_TYPES)[number][] | null>({
      type: ['array', 'null'],
      items: enumOf(EVENT_TYPES),
      maxItems: 100,
      description: 'Null: those the endpoint subscribes to.',
    }),
    only_failed: Type.Boolean(),
    deliveries: Type.Integer({ minimum: 0, description: 'Started, or given up, so far.' }),
    created_at: timestamp(),
    completed_at: nullableTimestamp('Null while it runs.'),
  },
  { $id: 'WebhookJob', title: 'WebhookJob' },
);

export function presentDeliverySummary({ delivery, event }: DeliveryDetails): Static<typeof DeliverySummary> {
  return {
    id: delivery.id,
    endpoint_id: delivery.endpointId,
    event_id: delivery.eventId,
    event_type: event.type,
    test: event.test,
    status: delivery.status,
    held_for: delivery.status === 'held' ? (delivery.heldFor ?? 'endpoint_disabled') : null,
    attempt_count: delivery.attempts,
    next_attempt_at: delivery.nextAttemptAt?.toISOString() ?? null,
    last_status_code: delivery.lastStatusCode ?? null,
    last_error: delivery.lastError?.slice(0, MAX_ERROR_LENGTH) ?? null,
    created_at: delivery.createdAt.toISOString(),
    completed_at: delivery.completedAt?.toISOString() ?? null,
  };
}

export function presentDelivery(
  details: DeliveryDetails & { attempts: DeliveryAttempt[] },
): Static<typeof DeliveryRecord> {
  return {
    ...presentDeliverySummary(details),
    attempts: details.attempts.map((attempt) => ({
      number: attempt.number,
      started_at: attempt.startedAt.toISOString(),
      finished_at: attempt.finishedAt?.toISOString() ?? null,
      duration_ms: attempt.durationMs,
      status_code: attempt.statusCode,
      response_body: attempt.responseBody?.slice(0, MAX_RESPONSE_BODY_LENGTH) ?? null,
      error: attempt.error?.slice(0, MAX_ERROR_LENGTH) ?? null,
    })),
  };
}

export function presentJob(job: BulkJob): Static<typeof BulkJobRecord> {
  return {
    id: job.id,
    endpoint_id: job.endpointId,
    kind: job.kind,
    status: job.status,
    detail: job.detail ?? null,
    since: job.since?.toISOString() ?? null,
    until: job.until.toISOString(),
    event_types: job.eventTypes ?? null,
    only_failed: job.onlyFailed,
    deliveries: job.deliveries,
    created_at: job.createdAt.toISOString(),
    completed_at: job.completedAt?.toISOString() ?? null,
  };
}
