import { type Static, type TSchema, type TSchemaOptions, Type } from 'typebox';
import { ERROR_CODES, type ErrorCode } from '../platform/errors.ts';

/** Building blocks of the API's schemas. Every string and array has a maximum size; a guard test checks this. */
export const text = (maxLength: number, options: TSchemaOptions & { minLength?: number } = {}) =>
  Type.String({ maxLength, ...options });

export const nullableText = (maxLength: number, options: TSchemaOptions = {}) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength, ...options });

/** ISO 8601 UTC with milliseconds, in responses. */
export const timestamp = (description?: string) =>
  Type.String({ format: 'date-time', maxLength: 30, ...(description ? { description } : {}) });

export const nullableTimestamp = (description?: string) =>
  Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time',
    maxLength: 30,
    ...(description ? { description } : {}),
  });

/**
 * An optional field of a POST that also accepts null, which means "not given": validation drops it, so handlers see only
 * values.
 */
export const orNull = <Schema extends TSchema>(schema: Schema) =>
  Type.Unsafe<Static<Schema>>({ ...schema, type: [(schema as { type?: string }).type, 'null'].flat() });

export const enumOf = <const Values extends readonly string[]>(
  values: Values,
  options: TSchemaOptions = {},
) => Type.Unsafe<Values[number]>({ type: 'string', enum: [...values], ...options });

/** An object with only the given fields: others are rejected in requests and never sent in responses. */
export const strictObject = <Properties extends Record<string, TSchema>>(
  properties: Properties,
  options: TSchemaOptions = {},
) => Type.Object(properties, { additionalProperties: false, ...options });

/**
 * A resource of the API's responses. `object` names its kind, by which clients tell resources apart; the presenter of the
 * resource sets it. Events have none: their fields are those of the specification.
 */
export const resource = <const Kind extends string, Properties extends Record<string, TSchema>>(
  kind: Kind,
  properties: Properties,
  options: TSchemaOptions = {},
) => strictObject({ object: Type.Literal(kind), ...properties }, options);

/** Refers to a schema registered by its `$id`. The OpenAPI document then contains the schema only once. */
export const ref = <Schema extends TSchema>(schema: Schema) =>
  Type.Unsafe<Static<Schema>>({ $ref: `${(schema as { $id?: string }).$id}#` });

export const MAX_ID_LENGTH = 128;
export const id = (description: string) => text(MAX_ID_LENGTH, { description, minLength: 1 });

export const Problem = Type.Object(
  {
    type: text(512, { description: 'URL that explains the code.' }),
    title: text(256),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: text(4096, { description: 'What happened.' }),
    code: enumOf(Object.keys(ERROR_CODES) as ErrorCode[], {
      description: 'Stable; use it in code. More codes may be added.',
    }),
    request_id: text(64),
    fix: text(1024, { description: 'What the caller can do next.' }),
    errors: Type.Optional(
      Type.Array(
        strictObject({
          path: text(1024, {
            description: 'Where in the request, as a client writes it: to[0].email, limit.',
          }),
          message: text(1024),
        }),
        {
          maxItems: 100,
        },
      ),
    ),
    permission: Type.Optional(
      text(64, { description: 'permission_denied: the permission that is missing.' }),
    ),
    policy: Type.Optional(
      text(64, { description: 'policy_violation, message_rejected: the policy of the organization.' }),
    ),
    rejection_reason: Type.Optional(
      enumOf(['blocked_recipient', 'rate_limited', 'account_paused'], {
        description: 'Why the send was refused: message_rejected, a suspension, a rate or usage limit.',
      }),
    ),
    counter: Type.Optional(
      text(64, { description: 'usage_limit_exceeded, plan_limit_reached: what has reached its limit.' }),
    ),
    resets_at: Type.Optional(
      timestamp(
        'usage_limit_exceeded, message_rejected by a daily cap: when the counter starts again; absent for storage_bytes.',
      ),
    ),
    nearest_operation: Type.Optional(
      text(256, {
        description:
          'not_found of a path, method_not_allowed: the operation that was probably meant, as method and path.',
      }),
    ),
    message_id: Type.Optional(id('not_found of a draft that was sent: the message that it became.')),
  },
  { $id: 'Problem', title: 'Problem', additionalProperties: true, description: 'RFC 9457 problem details.' },
);

/** Possible for any request; 404 because `x-env-id` may name an unknown environment. */
const COMMON_STATUSES = [400, 401, 403, 404, 429, 500, 503];
/** Possible for any change: conflicts, and bodies that stop arriving, are too large or not JSON. */
const CHANGE_STATUSES = [408, 409, 413, 415];
const STATUS_DESCRIPTIONS: Record<number, string> = {
  400: 'The request is invalid.',
  401: 'There is no valid credential.',
  403: 'The credential lacks the permission, or the organization, environment or inbox is suspended, or the organization is closed.',
  404: 'The resource does not exist or is not accessible.',
  408: 'The body did not arrive.',
  409: 'The current state does not allow the operation.',
  412: '`If-Match` names no version that the resource has.',
  413: 'The body is too large.',
  415: 'The content type is not supported.',
  422: 'The request is valid but cannot be processed.',
  428: 'The version that the request is based on is missing.',
  429: 'Too many requests.',
  500: 'Internal server error.',
  503: 'A dependency is unavailable. No partial change was made.',
};

/** Error responses of a read: those possible for any request, and the given ones. */
export function problems(...extraStatuses: number[]) {
  const statuses = [...new Set([...COMMON_STATUSES, ...extraStatuses])].sort((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: STATUS_DESCRIPTIONS[status] ?? 'Rejected.',
        content: { 'application/problem+json': { schema: ref(Problem) } },
      },
    ]),
  );
}

/** Error responses of a PATCH or DELETE. */
export function changeProblems(...extraStatuses: number[]) {
  return problems(...CHANGE_STATUSES, ...extraStatuses);
}

/** Error responses of a POST; 422 because an Idempotency-Key may have been used before. */
export function postProblems(...extraStatuses: number[]) {
  return changeProblems(422, ...extraStatuses);
}

/** A response without a body. */
export const NoContent = Type.Null({ description: 'Done.' });
