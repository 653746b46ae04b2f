import { EVENT_TYPES, type EventType } from '../../domain/events/event-types.ts';
import { eventSchemaName } from '../events/events.schemas.ts';

const text = (maxLength: number) => ({ type: 'string' as const, maxLength });

/** What every delivery carries beside its body. */
const REQUIRED_HEADERS = [
  ['x-service-timestamp', 'Unix time in seconds of this attempt; refuse what is older than 5 minutes.'],
  [
    'x-service-signature',
    'HMAC-SHA256, as lowercase hex, of the timestamp, a period and the raw body; the key is the whole whsec_ secret.',
  ],
  ['webhook-id', 'The event id, for libraries of Standard Webhooks.'],
  ['webhook-timestamp', 'As x-service-timestamp.'],
  ['webhook-signature', 'Standard Webhooks: v1, and the signature; two while a rotated secret overlaps.'],
] as const;
const OPTIONAL_HEADERS = [
  ['x-service-signature-previous', 'The same by the old secret, while a rotated one overlaps.'],
  ['x-service-test', '`true` on test events; real ones lack it.'],
] as const;

/** The `webhooks` of the API's description (OpenAPI 3.1): what is sent to receivers, by event type. */
export function describeWebhooks() {
  return Object.fromEntries(EVENT_TYPES.map((type) => [type, { post: describeWebhook(type) }]));
}

function describeWebhook(type: EventType) {
  const header = (required: boolean) => (entry: readonly [string, string]) => ({
    name: entry[0],
    in: 'header' as const,
    required,
    description: entry[1],
    schema: text(1024),
  });
  return {
    operationId: `webhooks.${type}`,
    summary: `A \`${type}\` event`,
    tags: ['Webhooks'],
    security: [],
    parameters: [...REQUIRED_HEADERS.map(header(true)), ...OPTIONAL_HEADERS.map(header(false))],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { $ref: `#/components/schemas/${eventSchemaName(type)}` } } },
    },
    responses: {
      '2XX': { description: 'Received. Anything else, or nothing within 15 s, is tried again.' },
      '410': { description: 'The endpoint is disabled.' },
    },
  };
}
