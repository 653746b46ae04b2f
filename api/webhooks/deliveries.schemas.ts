import { type Static, Type } from 'typebox';
import { EVENT_TYPES } from '../../domain/events/event-types.ts';
import { type BulkJob, SKIP_REASONS } from '../../domain/webhooks/bulk-job.entity.ts';
import {
  DELIVERY_STATUSES,
  MAX_HEADER_VALUE_LENGTH,
  MAX_RESPONSE_HEADERS,
} from '../../domain/webhooks/delivery.entity.ts';
import type {
  DeliveryDetails,
  DeliveryWithAttempts,
} from '../../domain/webhooks/delivery-control.service.ts';
import { pageQuery } from '../lists.ts';
import { minimalOf } from '../minimal-response.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  orNull,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

/** Longer errors are truncated. */
const MAX_ERROR_LENGTH = 4_096;
/** The service stores at most 4 KiB of a response. */
const MAX_RESPONSE_BODY_LENGTH = 4_096;
const nullableInteger = (description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], description });

const summaryFields = {
  id: id('Delivery id (whd_…).'),
  endpoint_id: id('Endpoint it is sent to.'),
  event_id: id('Event it carries. Receivers use it to deduplicate.'),
  event_type: enumOf(EVENT_TYPES),
  test: Type.Boolean({ description: 'Carries a test event.' }),
  status: enumOf(DELIVERY_STATUSES, {
    description:
      'pending: in progress or waiting for the next attempt. held: on hold, see held_for. exhausted: every attempt failed. blocked: the URL resolves to a host or port that is not allowed.',
  }),
  held_for: Type.Unsafe<
    | 'endpoint_disabled'
    | 'endpoint_failing'
    | 'usage_limit'
    | 'suspension'
    | 'organization_deleted'
    | 'switched_off'
    | null
  >({
    type: ['string', 'null'],
    enum: [
      'endpoint_disabled',
      'endpoint_failing',
      'usage_limit',
      'suspension',
      'organization_deleted',
      'switched_off',
      null,
    ],
    description:
      'endpoint_disabled: held until the endpoint is enabled. endpoint_failing: held until the endpoint answers a probe with 2xx and earlier deliveries have started. usage_limit: held until a new month begins or the tier or limit changes. suspension: held until the organization, environment and inbox of the event are reinstated. organization_deleted: held while the organization is closed. switched_off: held while the operator of the service has switched deliveries off. Null unless held.',
  }),
  attempt_count: Type.Integer({ minimum: 0 }),
  next_attempt_at: nullableTimestamp(
    'Null unless pending, or requested with retry while held_for is endpoint_failing.',
  ),
  last_status_code: nullableInteger('HTTP status of the last attempt. Null without a response.'),
  last_error: nullableText(MAX_ERROR_LENGTH, {
    description: 'Why the last attempt failed or the delivery ended.',
  }),
  created_at: timestamp(),
  completed_at: nullableTimestamp('Null while the delivery is pending or held.'),
};

/** A delivery in a list, without its attempts. */
export const DeliverySummary = resource('webhook_delivery', summaryFields, {
  $id: 'WebhookDeliverySummary',
  title: 'WebhookDeliverySummary',
});

const headers = (description: string) =>
  Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: text(MAX_HEADER_VALUE_LENGTH),
    maxProperties: MAX_RESPONSE_HEADERS,
    description,
  });

export const DeliveryRecord = resource(
  'webhook_delivery',
  {
    ...summaryFields,
    request: strictObject({
      method: Type.Literal('POST'),
      url: text(2048, { description: 'Present URL of the endpoint.' }),
      headers: headers(
        'The same in each attempt. Each attempt also has its time and the signatures. The body is the event: GET /events/{id}.',
      ),
    }),
    attempts: Type.Array(
      strictObject({
        number: Type.Integer({ minimum: 1 }),
        started_at: timestamp(),
        finished_at: nullableTimestamp('Null while in progress, or if a crash interrupted it.'),
        duration_ms: nullableInteger('Time until the response was read or the attempt failed.'),
        status_code: nullableInteger('HTTP status. Null without a response.'),
        response_body: nullableText(MAX_RESPONSE_BODY_LENGTH, {
          description: 'The first 4 KiB of the response.',
        }),
        response_headers: Type.Unsafe<Record<string, string> | null>({
          ...headers(
            `The first ${MAX_RESPONSE_HEADERS} headers of the response, without cookies; values are cut after ${MAX_HEADER_VALUE_LENGTH} characters. Null without a response, and after the message of the event was deleted.`,
          ),
          type: ['object', 'null'],
        }),
        error: nullableText(MAX_ERROR_LENGTH, { description: 'Null if the attempt succeeded.' }),
      }),
      { maxItems: 10_000, description: 'Oldest first, including those before a retry or replay.' },
    ),
  },
  { $id: 'WebhookDelivery', title: 'WebhookDelivery' },
);

export const DeliveryQuery = strictObject({
  ...pageQuery,
  status: Type.Optional(enumOf(DELIVERY_STATUSES, { description: 'Only deliveries with this status.' })),
  event_type: Type.Optional(enumOf(EVENT_TYPES, { description: 'Only deliveries of this type of event.' })),
});

export const RotateSecret = strictObject(
  {
    overlap_seconds: Type.Integer({
      minimum: 0,
      maximum: 604_800,
      default: 86_400,
      description: 'How long deliveries are also signed with the old secret. 0: not at all.',
    }),
  },
  { $id: 'RotateWebhookSecret', title: 'RotateWebhookSecret' },
);

export const SendTestEvent = strictObject(
  {
    event_type: Type.Optional(
      enumOf(EVENT_TYPES, { description: 'Default: the first type the endpoint subscribes to.' }),
    ),
  },
  { $id: 'SendTestEvent', title: 'SendTestEvent' },
);

const requiredTime = (description: string) =>
  Type.String({ format: 'date-time', maxLength: 40, description });

export const ReplayEvents = strictObject(
  {
    since: requiredTime('Events recorded at or after this time.'),
    until: Type.Optional(requiredTime('Events recorded before this time. Default: now.')),
    event_types: Type.Optional(
      orNull(
        Type.Array(enumOf(EVENT_TYPES), {
          minItems: 1,
          maxItems: EVENT_TYPES.length,
          uniqueItems: true,
          description: 'Default: the types the endpoint subscribes to.',
        }),
      ),
    ),
    only_failed: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Only deliveries that are exhausted, blocked or canceled, and those that failed and wait for their next attempt.',
      }),
    ),
  },
  { $id: 'ReplayEvents', title: 'ReplayEvents' },
);

export const BulkJobRecord = resource(
  'webhook_job',
  {
    id: id('Job id (whj_…).'),
    endpoint_id: id('Endpoint whose deliveries it changes.'),
    kind: enumOf(['replay', 'cancel']),
    status: enumOf(['running', 'completed', 'stopped']),
    detail: nullableText(1024, { description: 'Why it was stopped. Null otherwise.' }),
    since: nullableTimestamp(),
    until: timestamp(),
    event_types: Type.Unsafe<(typeof EVENT_TYPES)[number][] | null>({
      type: ['array', 'null'],
      items: enumOf(EVENT_TYPES),
      maxItems: 100,
      description: 'Null: the types the endpoint subscribes to.',
    }),
    only_failed: Type.Boolean(),
    deliveries: Type.Integer({
      minimum: 0,
      description: 'Deliveries changed so far: made and expedited, or canceled.',
    }),
    made: Type.Integer({ minimum: 0, description: 'Of a replay: deliveries created, or started again.' }),
    expedited: Type.Integer({
      minimum: 0,
      description: 'Of a replay: deliveries that waited for their next attempt, which is due now.',
    }),
    skipped: Type.Integer({ minimum: 0, description: 'Of a replay: deliveries left as they are.' }),
    skipped_for: strictObject(
      Object.fromEntries(SKIP_REASONS.map((reason) => [reason, Type.Optional(Type.Integer({ minimum: 1 }))])),
      {
        description:
          'How many were skipped for which reason. in_flight: an attempt is in progress. due: it is about to be attempted. purged: it announced a message that was deleted. The others: it is held, as held_for says.',
      },
    ),
    created_at: timestamp(),
    completed_at: nullableTimestamp('Null while the job is running.'),
  },
  { $id: 'WebhookJob', title: 'WebhookJob' },
);

export const MinimalDelivery = minimalOf(DeliverySummary, ['id', 'endpoint_id', 'event_id', 'status']);
export const MinimalBulkJob = minimalOf(BulkJobRecord, ['id', 'endpoint_id', 'status']);
/** Spread into the config of changes that return a delivery or a job. */
export const DELIVERY_RESPONSE = {
  readPermission: 'webhooks:read',
  minimalResponse: MinimalDelivery,
} as const;
export const JOB_RESPONSE = { readPermission: 'webhooks:read', minimalResponse: MinimalBulkJob } as const;

export function presentDeliverySummary({ delivery, event }: DeliveryDetails): Static<typeof DeliverySummary> {
  return {
    object: 'webhook_delivery',
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

export function presentDelivery(details: DeliveryWithAttempts): Static<typeof DeliveryRecord> {
  return {
    ...presentDeliverySummary(details),
    request: details.request,
    attempts: details.attempts.map((attempt) => ({
      number: attempt.number,
      started_at: attempt.startedAt.toISOString(),
      finished_at: attempt.finishedAt?.toISOString() ?? null,
      duration_ms: attempt.durationMs,
      status_code: attempt.statusCode,
      response_body: attempt.responseBody?.slice(0, MAX_RESPONSE_BODY_LENGTH) ?? null,
      response_headers: attempt.responseHeaders,
      error: attempt.error?.slice(0, MAX_ERROR_LENGTH) ?? null,
    })),
  };
}

export function presentJob(job: BulkJob): Static<typeof BulkJobRecord> {
  return {
    object: 'webhook_job',
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
    made: job.kind === 'replay' ? job.deliveries - job.expedited : 0,
    expedited: job.expedited,
    skipped: Object.values(job.skipped).reduce((sum, count) => sum + count, 0),
    skipped_for: { ...job.skipped },
    created_at: job.createdAt.toISOString(),
    completed_at: job.completedAt?.toISOString() ?? null,
  };
}
