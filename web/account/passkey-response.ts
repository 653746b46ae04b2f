import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { text } from '../../api/schemas.ts';
import { invalid } from '../../platform/errors.ts';

/** Field of a form in which the script of a page puts what the browser returned, as JSON. */
export const PasskeyField = text(200_000);

/** @throws AppError `validation_error`, which the page shows. */
export function readPasskeyResponse<Schema extends TSchema>(schema: Schema, json: string): Static<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    value = undefined;
  }
  if (Value.Check(schema, value)) return value;
  throw invalid('/body/response', 'is not what a browser returns', 'Reload the page and try again.');
}
