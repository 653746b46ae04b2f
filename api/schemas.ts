import { type Static, type TSchema, type TSchemaOptions, Type } from 'typebox';

/**
 * The building blocks of the API's schemas. Every string and every array has a bound; a guard test looks.
 */
export const text = (maxLength: number, options: TSchemaOptions & { minLength?: number } = {}) =>
  Type.String({ maxLength, ...options });

export const nullableText = (maxLength: number, options: TSchemaOptions = {}) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength, ...options });

/** ISO 8601 UTC with milliseconds, in answers. */
export const timestamp = (description?: string) =>
  Type.String({ format: 'date-time', maxLength: 30, ...(description ? { description } : {}) });

export const nullableTimestamp = (description?: string) =>
  Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time',
    maxLength: 30,
    ...(description ? { description } : {}),
  });

export const enumOf = <const Values extends readonly string[]>(
  values: Values,
  options: TSchemaOptions = {},
) => Type.Unsafe<Values[number]>({ type: 'string', enum: [...values], ...options });

/** An object whose every field is named: others are refused in requests and never sent in answers. */
export const strictObject = <Properties extends Record<string, TSchema>>(
  properties: Properties,
  options: TSchemaOptions = {},
) => Type.Object(properties, { additionalProperties: false, ...options });

/** Refers to a schema registered by its `$id`, so that the description names it once. */
export const ref = <Schema extends TSchema>(schema: Schema) =>
  Type.Unsafe<Static<Schema>>({ $ref: `${(schema as { $id?: string }).$id}#` });

export const MAX_ID_LENGTH = 128;
export const id = (description: string) => text(MAX_ID_LENGTH, { description, minLength: 1 });

export const Problem = Type.Object(
  {
    type: text(512, { description: 'URL of the explanation of the code.' }),
    title: text(256),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: text(4096, { description: 'What happened.' }),
    code: text(64, { description: 'Stable; branch on it.' }),
    request_id: text(64),
    fix: text(1024, { description: 'What the caller can do next.' }),
    errors: Type.Optional(
      Type.Array(
        strictObject({
          path: text(1024, { description: 'JSON Pointer, e.g. /body/to/0/email.' }),
          message: text(1024),
        }),
        {
          maxItems: 100,
        },
      ),
    ),
  },
  { $id: 'Problem', title: 'Problem', additionalProperties: true, description: 'RFC 9457 problem details.' },
);

/** Any request may be answered so; 404 because `x-env-id` may name an environment out of reach. */
const COMMON_STATUSES = [400, 401, 403, 404, 429, 500, 503];
/** What may change something may meet another change, and has a body that may be too large or no JSON. */
const CHANGE_STATUSES = [409, 413, 415];
const STATUS_DESCRIPTIONS: Record<number, string> = {
  400: 'The request is not valid.',
  401: 'No valid credential.',
  403: 'The credential lacks the permission, or something is suspended.',
  404: 'Not there, or out of reach.',
  409: 'The state does not allow it.',
  413: 'The body is too large.',
  415: 'Not JSON.',
  422: 'Understood, and not possible.',
  429: 'Too many requests.',
  500: 'A fault on our side.',
  503: 'A dependency is down; nothing was half done.',
};

/** Error answers of a read, as far as they are not every read's. */
export function problems(...extraStatuses: number[]) {
  const statuses = [...new Set([...COMMON_STATUSES, ...extraStatuses])].sort((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: STATUS_DESCRIPTIONS[status] ?? 'Refused.',
        content: { 'application/problem+json': { schema: ref(Problem) } },
      },
    ]),
  );
}

/** Error answers of a PATCH or DELETE. */
export function changeProblems(...extraStatuses: number[]) {
  return problems(...CHANGE_STATUSES, ...extraStatuses);
}

/** Error answers of a POST: 422 because an Idempotency-Key may have been used before. */
export function postProblems() {
  return changeProblems(422);
}

/** An answer without a body. */
export const NoContent = Type.Null({ description: 'Done.' });
