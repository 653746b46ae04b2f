import { Type } from 'typebox';
import { findAddressProblem } from '../../domain/mime/address-syntax.ts';
import type { MailAddress } from '../../domain/mime/mail-address.ts';
import { AppError, type FieldError } from '../../platform/errors.ts';
import { strictObject, text } from '../schemas.ts';

/** No control characters, so that text from a caller cannot start a header field. */
export const NO_CONTROL_CHARACTERS = '^[^\\u0000-\\u001f\\u007f]*$';
export const singleLineText = (
  maxLength: number,
  options: { description?: string; minLength?: number } = {},
) => text(maxLength, { pattern: NO_CONTROL_CHARACTERS, ...options });

export const Address = strictObject(
  {
    email: text(254, { minLength: 3, description: 'ASCII, RFC 5321, without a quoted local part.' }),
    name: Type.Optional(singleLineText(255, { description: 'Display name.' })),
  },
  { $id: 'Address', title: 'Address' },
);

/** An address as stored: inbound messages may contain addresses that are invalid for sending. */
export const AddressSeen = strictObject(
  { email: text(1024), name: Type.Optional(text(1024)) },
  { $id: 'AddressSeen', title: 'AddressSeen' },
);

export const addressList = (description: string) =>
  Type.Array(Type.Unsafe<MailAddress>({ $ref: 'Address#' }), { maxItems: 50, description });

/** @throws AppError `validation_error` that lists every invalid address. */
export function checkAddresses(lists: Record<string, MailAddress[] | null | undefined>): void {
  const errors: FieldError[] = [];
  for (const [field, addresses] of Object.entries(lists)) {
    for (const [index, { email }] of (addresses ?? []).entries()) {
      const problem = findAddressProblem(email);
      if (problem) errors.push({ path: `/body/${field}/${index}/email`, message: problem });
    }
  }
  const [first] = errors;
  if (!first) return;
  throw new AppError('validation_error', {
    detail: `${first.path} ${first.message}.`,
    fix: 'Correct the addresses listed in errors.',
    errors,
  });
}
