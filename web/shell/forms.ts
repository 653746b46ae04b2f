import type { FastifyRequest } from 'fastify';
import { type TProperties, Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { invalid } from '../../platform/errors.ts';
import { NOTICES, type Notice } from './notices.ts';

/** Mailed tokens are opaque text; the service that takes one checks it. */
export const Token = text(200);

/** A filter of a list, empty if its field was left empty. */
export const OptionalText = (maxLength: number) => Type.Optional(text(maxLength));

const notice = Type.Optional(enumOf(Object.keys(NOTICES) as Notice[]));

/** The query of pages that people are sent to. */
export const PageQuery = strictObject({ next: text(500, { default: '/overview' }), notice });
/** The query of pages that emails link to. */
export const TokenQuery = strictObject({ token: text(200, { default: '' }), notice });

const screenQuery = {
  org: Type.Optional(text(64)),
  env: Type.Optional(text(64)),
  notice,
  about: OptionalText(400),
};
/** The query of pages of an organization. A person of several names one; without `env` it is the default environment. */
export const OrganizationQuery = strictObject(screenQuery);
/** The query of a list with its filters. */
export const listQuery = <Filters extends TProperties>(filters: Filters) =>
  strictObject({ ...screenQuery, cursor: OptionalText(1024), ...filters });

/** The text that a form had in a field. The form may have been rejected, so nothing is known of it. */
export function enteredText({ body }: FastifyRequest, field: string): string {
  const value = (body as Record<string, unknown> | undefined)?.[field];
  return typeof value === 'string' ? value : '';
}

/** A number that a person types, empty for none. `readNumber` checks it, in words for people. */
export const NumberField = text(12);

/** @throws AppError `validation_error` at the field. */
export function readNumber(
  field: string,
  entered: string,
  { min, max }: { min: number; max: number },
): number | null {
  const trimmed = entered.trim();
  if (trimmed === '') return null;
  const value = Number(trimmed);
  if (!/^\d+$/.test(trimmed) || value < min || value > max)
    throw invalid(
      `/body/${field}`,
      `must be a whole number from ${min.toLocaleString('en-US')} to ${max.toLocaleString('en-US')}`,
      'Use digits only.',
    );
  return value;
}

/** As {@link readNumber}, for a field that must not be empty. */
export function requireNumber(field: string, entered: string, range: { min: number; max: number }): number {
  const value = readNumber(field, entered, range);
  if (value === null) throw invalid(`/body/${field}`, 'is required', 'Enter a number.');
  return value;
}
