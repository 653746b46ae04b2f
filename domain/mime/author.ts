import { domainToASCII, domainToUnicode } from 'node:url';
import parseAddresses from 'nodemailer/lib/addressparser';
import { decodeEncodedWords } from './encoded-words.ts';
import type { MailAddress } from './mail-address.ts';

export interface Author {
  /** The first mailbox of the first From field; null without one. */
  from: MailAddress | null;
  /**
   * Mail clients may show different authors, or an address that is not what it looks like: several From fields or author
   * domains, a mailbox without a valid address next to another one, or a domain that IDNA maps to another spelling. DMARC
   * authenticates a single author domain (RFC 9989).
   */
  isAmbiguous: boolean;
}

/** Longer than any real field. The rest is ignored. */
const MAX_FIELD_CHARACTERS = 10_000;

/** @param fields the values of the From fields in order, decoded and unfolded. */
export function readAuthor(fields: readonly string[]): Author {
  const [first = '', ...others] = fields.map((field) => field.slice(0, MAX_FIELD_CHARACTERS));
  const mailboxes = parseAddresses(first, { flatten: true });
  const found = mailboxes.find(({ address }) => domainOf(address) !== '');
  const domains = new Set(mailboxes.map(({ address }) => domainOf(address).toLowerCase()));
  const name = decodeEncodedWords(found?.name ?? '');
  return {
    from: found ? { email: found.address, ...(name ? { name } : {}) } : null,
    isAmbiguous: others.length > 0 || domains.size > 1 || [...domains].some(isMapped),
  };
}

function domainOf(address: string | undefined): string {
  const at = address?.lastIndexOf('@') ?? -1;
  return address === undefined || at < 1 ? '' : address.slice(at + 1);
}

/** Whether IDNA (UTS 46) turns the domain into another one than it shows, as it does with full-width letters. */
function isMapped(domain: string): boolean {
  if (domain === '' || /^[\x21-\x7e]+$/.test(domain)) return false;
  const ascii = domainToASCII(domain);
  return ascii === '' || domainToUnicode(ascii) !== domain.normalize('NFC');
}
