import { EVENT_TYPES, type EventType } from '../../domain/events/event-types.ts';
import { eventSchemaName } from '../events/events.schemas.ts';

const text = (maxLength: number) => ({ type: 'string' as const, maxLength });

/** Headers of every delivery. */
const REQUIRED_HEADERS = [
  ['x-service-timestamp', 'Unix time of this attempt in seconds. Reject requests older than 5 minutes.'],
  [
    'x-service-signature',
    'HMAC-SHA256 of the timestamp, a period and the raw body, in lowercase hex. The key is the whole whsec_ secret.',
  ],
  ['webhook-id', 'The event id (Standard Webhooks).'],
  ['webhook-timestamp', 'Same as x-service-timestamp (Standard Webhooks).'],
  [
    'webhook-signature',
    '`v1,` and the base64 HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}` (Standard Webhooks). The key is what follows whsec_, base64-decoded. Two signatures, with a space between them, during a rotation overlap.',
  ],
] as const;
const OPTIONAL_HEADERS = [
  [
    'x-service-signature-previous',
    'x-service-signature with the previous secret, during a rotation overlap.',
  ],
  ['x-service-test', '`true` on test events; absent otherwise.'],
] as const;

/** The `webhooks` section of the OpenAPI 3.1 document: one request per event type. */
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
    operationId: `webhooks.${type.replace(/[._]([a-z])/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: `A \`${type}\` event`,
    tags: ['Webhooks'],
    security: [],
    parameters: [...REQUIRED_HEADERS.map(header(true)), ...OPTIONAL_HEADERS.map(header(false))],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { $ref: `#/components/schemas/${eventSchemaName(type)}` } } },
    },
    responses: {
      '2XX': {
        description: 'Received. After any other response, or none within 15 s, the delivery is retried.',
      },
      '410': { description: 'Disables the endpoint.' },
    },
  };
}
