import { type TSchema, Type } from 'typebox';
import { findAddressProblem, type MailAddress } from '../../domain/mime/mail-address.ts';
import { AppError, type FieldError } from '../../platform/errors.ts';
import { describeField } from '../plugins/client-path.ts';
import { strictObject, text } from '../schemas.ts';

/** No control characters, so that text from a caller cannot start a header field. */
export const NO_CONTROL_CHARACTERS = '^[^\\u0000-\\u001f\\u007f]*$';
/** As {@link NO_CONTROL_CHARACTERS}, with at least one character that is no space. */
export const TEXT_IN_ONE_LINE =
  '^[^\\u0000-\\u001f\\u007f]*[^\\s\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]*$';
export const singleLineText = (
  maxLength: number,
  options: { description?: string; minLength?: number; examples?: string[] } = {},
) => text(maxLength, { pattern: NO_CONTROL_CHARACTERS, ...options });

/** The keywords of a strict object, without its `type`. */
function objectKeywords(properties: Record<string, TSchema>) {
  const { type: _type, ...keywords } = strictObject(properties);
  return keywords;
}

const MAX_NAME_LENGTH = 255;
const MAX_EMAIL_LENGTH = 254;

/** One schema and not a union of two, so that an error names only what is wrong with the form that was used. */
export const Address = Type.Unsafe<AddressInput>({
  $id: 'Address',
  title: 'Address',
  description: 'An object, or a string with or without a display name: "Ada <ada@people.example>".',
  type: ['object', 'string'],
  ...objectKeywords({
    email: text(MAX_EMAIL_LENGTH, {
      minLength: 3,
      description: 'ASCII, RFC 5321, without a quoted local part.',
      examples: ['ada@people.example'],
    }),
    name: Type.Optional(singleLineText(MAX_NAME_LENGTH, { description: 'Display name.', examples: ['Ada'] })),
  }),
  minLength: 3,
  maxLength: 1024,
  pattern: NO_CONTROL_CHARACTERS,
  examples: [{ email: 'ada@people.example', name: 'Ada' }, 'Ada <ada@people.example>'],
});
export type AddressInput = MailAddress | string;

/** An address as stored: inbound messages may contain addresses that are invalid for sending. */
export const AddressSeen = strictObject(
  { email: text(1024), name: Type.Optional(text(1024)) },
  { $id: 'AddressSeen', title: 'AddressSeen' },
);

export const addressList = (description: string) =>
  Type.Array(Type.Unsafe<AddressInput>({ $ref: 'Address#' }), { maxItems: 50, description });

/**
 * Reads the address lists of a body.
 *
 * @throws AppError `validation_error` that lists every invalid address.
 */
export function readAddressLists<Field extends string>(
  lists: Record<Field, AddressInput[] | null | undefined>,
): Record<Field, MailAddress[]> {
  const errors: FieldError[] = [];
  const read = Object.entries<AddressInput[] | null | undefined>(lists).map(([field, addresses]) => [
    field,
    (addresses ?? []).map((input, index) => {
      const address = typeof input === 'string' ? parseAddress(input) : input;
      const path = `/body/${field}/${index}${typeof input === 'string' ? '' : '/email'}`;
      const problem = findAddressProblem(address.email);
      if (problem) errors.push({ path, message: problem });
      if ((address.name?.length ?? 0) > MAX_NAME_LENGTH)
        errors.push({ path, message: `must not have a name of more than ${MAX_NAME_LENGTH} characters` });
      return address;
    }),
  ]);
  const [first] = errors;
  if (!first) return Object.fromEntries(read) as Record<Field, MailAddress[]>;
  throw new AppError('validation_error', {
    detail: describeField(first),
    fix: 'Correct the addresses listed in errors: "ada@people.example", "Ada <ada@people.example>" or {"email":"ada@people.example","name":"Ada"}.',
    errors,
  });
}

/** Reads `ada@people.example` and `Ada <ada@people.example>`, whose name may be quoted (RFC 5322 section 3.4). */
function parseAddress(text: string): MailAddress {
  const trimmed = text.trim();
  const start = trimmed.lastIndexOf('<');
  if (start < 0 || !trimmed.endsWith('>')) return { email: trimmed };
  const email = trimmed.slice(start + 1, -1).trim();
  const name = trimmed.slice(0, start).trim();
  const isQuoted = name.length > 1 && name.startsWith('"') && name.endsWith('"');
  const shown = isQuoted ? name.slice(1, -1).replace(/\\(.)/g, '$1') : name;
  return shown === '' ? { email } : { email, name: shown };
}
