import { findAddressProblem, type MailAddress, splitAddresses } from '../../domain/mime/mail-address.ts';
import { MAX_RECIPIENTS } from '../../domain/outbound/outbound-content.ts';
import { AppError, type FieldError } from '../../platform/errors.ts';

const FIELDS = ['to', 'cc', 'bcc'] as const;
type RecipientField = (typeof FIELDS)[number];

/** Longer than 50 addresses with names. */
export const MAX_RECIPIENTS_LENGTH = 16_000;

/**
 * Reads the fields of a form that people fill with addresses, separated by commas: `Ada <ada@people.example>, bob@people.example`.
 *
 * @throws AppError `validation_error` that names every field with an invalid address.
 */
export function readRecipients(form: Record<RecipientField, string>): Record<RecipientField, MailAddress[]> {
  const errors: FieldError[] = [];
  const read = FIELDS.map((field) => {
    const addresses = splitAddresses(form[field]).map(toAddress);
    const wrong = addresses.find(({ email }) => findAddressProblem(email));
    if (wrong)
      errors.push({
        path: `/body/${field}`,
        message: `“${wrong.email.slice(0, 100)}” ${findAddressProblem(wrong.email)}`,
      });
    return [field, addresses] as const;
  });
  const count = read.reduce((sum, [, { length }]) => sum + length, 0);
  if (count > MAX_RECIPIENTS)
    errors.push({
      path: '/body/to',
      message: `there are ${count} recipients with Cc and Bcc, and at most ${MAX_RECIPIENTS} are allowed`,
    });
  if (errors.length > 0)
    throw new AppError('validation_error', {
      detail: 'Some recipients are not right.',
      fix: 'Correct the marked fields. Separate addresses by commas.',
      errors,
    });
  return Object.fromEntries(read) as Record<RecipientField, MailAddress[]>;
}

/** `ada@people.example` or `Ada <ada@people.example>`, whose name may be quoted (RFC 5322 section 3.4). */
function toAddress(part: string): MailAddress {
  const [, written = '', email] = /^([^<]*|"(?:[^"\\]|\\.)*"\s*)<([^<>]*)>$/.exec(part) ?? [];
  if (email === undefined) return { email: part };
  const trimmed = written.trim();
  const name = /^".*"$/.test(trimmed) ? trimmed.slice(1, -1).replaceAll(/\\(.)/g, '$1') : trimmed;
  return name === '' ? { email: email.trim() } : { email: email.trim(), name };
}

/** As {@link readRecipients} reads them. */
export const writeRecipients = (addresses: readonly MailAddress[]): string =>
  addresses
    .map(({ email, name }) => (name ? `"${name.replaceAll(/["\\]/g, '\\$&')}" <${email}>` : email))
    .join(', ');
