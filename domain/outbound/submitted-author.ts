import parseAddresses from 'nodemailer/lib/addressparser';
import { AppError } from '../../platform/errors.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { decodeEncodedWords } from '../mime/encoded-words.ts';
import { fieldsNamed, type HeaderField } from '../mime/header-fields.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import { decodeHeaderLine } from '../mime/mime-reader.ts';

/**
 * Finds the author of a submitted message: exactly one From field with exactly one mailbox, which is the inbox's own,
 * with or without a plus tag (RFC 6409 section 6.1).
 *
 * @throws AppError `permission_denied`.
 */
export function requireOwnAuthor(fields: readonly HeaderField[], inboxEmail: string): MailAddress {
  const [from, ...others] = fieldsNamed(fields, 'From');
  if (!from || others.length > 0)
    throw foreignAuthor(inboxEmail, 'The message must have exactly one From field.');
  const unfolded = decodeHeaderLine(from.value).replaceAll('\r\n', '').trim();
  const [mailbox, ...further] = parseAddresses(unfolded);
  if (!mailbox || further.length > 0 || !('address' in mailbox) || mailbox.address === undefined)
    throw foreignAuthor(inboxEmail, 'From must contain exactly one address.');
  if (baseAddress(mailbox.address) !== inboxEmail)
    throw foreignAuthor(inboxEmail, `From must be ${inboxEmail}.`);
  const name = decodeEncodedWords(mailbox.name);
  return name === '' ? { email: mailbox.address } : { email: mailbox.address, name };
}

function foreignAuthor(inboxEmail: string, detail: string): AppError {
  return new AppError('permission_denied', {
    detail,
    fix: `Set the sender address of the account to ${inboxEmail}.`,
  });
}
