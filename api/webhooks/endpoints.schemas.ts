import { type Static, Type } from 'typebox';
import { EVENT_TYPES } from '../../domain/events/event-types.ts';
import { type EndpointDetails, MAX_COUNTED_DELIVERIES } from '../../domain/webhooks/endpoint.service.ts';
import { FAILING_AFTER_FAILURES, isFailing } from '../../domain/webhooks/endpoint-health.ts';
import { findOverlapEnd } from '../../domain/webhooks/endpoint-secret.ts';
import { NO_CONTROL_CHARACTERS, singleLineText } from '../messages/addresses.ts';
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

const events = Type.Array(enumOf(EVENT_TYPES), {
  minItems: 1,
  maxItems: EVENT_TYPES.length,
  uniqueItems: true,
});
const url = text(2048, { minLength: 1, description: 'HTTPS address of the receiver.' });
const inboxIds = Type.Unsafe<string[] | null>({
  type: ['array', 'null'],
  items: text(128, { minLength: 1 }),
  minItems: 1,
  maxItems: 100,
  description: 'Only events of these inboxes. Null: events of every inbox of the environment.',
});

const fields = {
  id: id('Endpoint id (whe_…).'),
  env_id: id('Environment whose events it receives.'),
  url,
  events: Type.Array(enumOf(EVENT_TYPES), { maxItems: 100 }),
  description: nullableText(255),
  inbox_ids: inboxIds,
  disabled: Type.Boolean({ description: 'While true, deliveries are held.' }),
  disabled_reason: nullableText(1024, { description: 'Null unless disabled.' }),
  failing: Type.Boolean({
    description: `Its last ${FAILING_AFTER_FAILURES} or more attempts failed. While true, deliveries are held and it is probed.`,
  }),
  failing_since: nullableTimestamp('First failure since the last success. Null unless failing.'),
  held_deliveries: Type.Integer({
    minimum: 0,
    maximum: MAX_COUNTED_DELIVERIES,
    description: `Deliveries with status held. At most ${MAX_COUNTED_DELIVERIES} are counted.`,
  }),
  pending_deliveries: Type.Integer({
    minimum: 0,
    maximum: MAX_COUNTED_DELIVERIES,
    description: `Deliveries with status pending. At most ${MAX_COUNTED_DELIVERIES} are counted.`,
  }),
  consecutive_failures: Type.Integer({
    minimum: 0,
    description: 'Failed attempts since the last success.',
  }),
  last_success_at: nullableTimestamp('When the receiver last accepted a delivery. Null if never.'),
  previous_secret_expires_at: nullableTimestamp(
    'Until when deliveries are also signed with the secret before the rotation. Null outside of an overlap.',
  ),
  created_at: timestamp(),
  updated_at: timestamp(),
};

export const EndpointRecord = resource('webhook_endpoint', fields, {
  $id: 'WebhookEndpoint',
  title: 'WebhookEndpoint',
});

export const CreatedEndpoint = resource(
  'webhook_endpoint',
  {
    ...fields,
    secret: text(128, {
      description:
        'Signing secret (whsec_…). Returned only once. Each request has a signature of Standard Webhooks: webhook-signature is `v1,` and the base64 HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}`. The key is what follows whsec_, base64-decoded.',
    }),
  },
  { $id: 'CreatedWebhookEndpoint', title: 'CreatedWebhookEndpoint' },
);

export const MinimalEndpoint = minimalOf(EndpointRecord, ['id', 'env_id']);
export const MinimalCreatedEndpoint = minimalOf(CreatedEndpoint, ['id', 'env_id', 'secret']);
/** Spread into the config of changes that return an endpoint. */
export const ENDPOINT_RESPONSE = {
  readPermission: 'webhooks:read',
  minimalResponse: MinimalEndpoint,
} as const;
export const CREATED_ENDPOINT_RESPONSE = {
  readPermission: 'webhooks:read',
  minimalResponse: MinimalCreatedEndpoint,
} as const;

export const CreateEndpoint = strictObject(
  {
    url,
    events,
    description: Type.Optional(orNull(singleLineText(255))),
    inbox_ids: Type.Optional(inboxIds),
  },
  { $id: 'CreateWebhookEndpoint', title: 'CreateWebhookEndpoint' },
);

export const UpdateEndpoint = strictObject(
  {
    url: Type.Optional(url),
    events: Type.Optional(events),
    description: Type.Optional(nullableText(255, { pattern: NO_CONTROL_CHARACTERS })),
    inbox_ids: Type.Optional(inboxIds),
    disabled: Type.Optional(Type.Boolean()),
  },
  { $id: 'UpdateWebhookEndpoint', title: 'UpdateWebhookEndpoint' },
);

export function presentEndpoint({
  endpoint,
  heldDeliveries,
  pendingDeliveries,
  lastSuccessAt,
}: EndpointDetails): Static<typeof EndpointRecord> {
  const failing = !endpoint.disabled && isFailing(endpoint);
  const overlapEnd = findOverlapEnd(endpoint);
  return {
    object: 'webhook_endpoint',
    id: endpoint.id,
    env_id: endpoint.environmentId,
    url: endpoint.url,
    events: endpoint.events,
    description: endpoint.description,
    inbox_ids: endpoint.inboxIds,
    disabled: endpoint.disabled,
    disabled_reason: endpoint.disabledReason,
    failing,
    failing_since: failing ? (endpoint.failingSince?.toISOString() ?? null) : null,
    held_deliveries: heldDeliveries,
    pending_deliveries: pendingDeliveries,
    consecutive_failures: endpoint.consecutiveFailures,
    last_success_at: lastSuccessAt?.toISOString() ?? null,
    previous_secret_expires_at: overlapEnd?.toISOString() ?? null,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.updatedAt.toISOString(),
  };
}
