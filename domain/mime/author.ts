import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';
import { readAddressList } from './address-list.ts';
import type { MailAddress } from './mail-address.ts';

export interface Author {
  /** The first mailbox of the first From field; null without one. */
  from: MailAddress | null;
  /**
   * The message does not have exactly one readable author: no From field or several, no mailbox or several, an address
   * that programs read differently or that looks like another one. DMARC authenticates a single author (RFC 9989), and
   * mail clients may show a different one.
   */
  isAmbiguous: boolean;
}

/** Longer than any real field. The rest of a longer field may contain another author. */
const MAX_FIELD_CHARACTERS = 10_000;

/** @param fields the values of the From fields in order, decoded and unfolded. */
export function readAuthor(fields: readonly string[]): Author {
  const [first = '', ...others] = fields;
  const { mailboxes, isClear } = readAddressList(first.slice(0, MAX_FIELD_CHARACTERS));
  const [from = null, ...further] = mailboxes;
  const isSingle = others.length === 0 && further.length === 0 && first.length <= MAX_FIELD_CHARACTERS;
  return { from, isAmbiguous: !(from && isClear && isSingle && isReadable(from.email)) };
}

/** Whether an address does not look like another one. */
function isReadable(address: string): boolean {
  // Encoded words are not allowed in addresses (RFC 2047 section 5); some programs decode them nevertheless.
  if (address.includes('\ufffd') || address.includes('=?')) return false;
  const domain = address.slice(address.lastIndexOf('@') + 1);
  if (domain.startsWith('[')) return isAddressLiteral(domain);
  return /^[\w.\-\u{80}-\u{10ffff}]+$/u.test(domain) && !isMapped(domain);
}

/** RFC 5321 section 4.1.3. */
function isAddressLiteral(domain: string): boolean {
  return isIP(domain.slice(1, -1).replace(/^IPv6:/i, '')) !== 0;
}

/** Whether IDNA (UTS 46) maps the domain to another one than it shows, such as one with full-width letters. */
function isMapped(domain: string): boolean {
  if (domain === '' || /^[\x21-\x7e]+$/.test(domain)) return false;
  const ascii = domainToASCII(domain);
  return ascii === '' || domainToUnicode(ascii) !== domain.normalize('NFC');
}
