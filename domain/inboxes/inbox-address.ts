import { randomInt } from 'node:crypto';
import { AppError, invalid } from '../../platform/errors.ts';
import { parseDomainName } from '../mime/domain-name.ts';
import { toDomainKey } from '../mime/mail-address.ts';

export interface InboxAddress {
  /** Lower case. */
  email: string;
  username: string;
  domain: string;
}

/** The requested address. Without any field, a random one is generated. */
export interface AddressRequest {
  username?: string;
  domain?: string;
  email?: string;
}

/**
 * Role mailboxes of a domain (RFC 2142), and addresses that the service itself uses to send or to receive reports. Written
 * without separators, which {@link isReserved} ignores: `no.reply` is `no-reply` to its reader.
 */
const RESERVED_USERNAMES = new Set([
  'postmaster',
  'abuse',
  'hostmaster',
  'mailerdaemon',
  'noreply',
  'donotreply',
  'bounce',
  'bounces',
  'complaints',
  'feedback',
]);

/**
 * On the shared domain these could be mistaken for the service's own, or prove to a certificate authority that their reader
 * owns the domain. Organizations may use them on their own domains.
 */
const RESERVED_ON_SHARED_DOMAIN = new Set([
  'webmaster',
  'noc',
  'security',
  'root',
  'admin',
  'dmarc',
  'tlsreports',
  'administrator',
  'info',
  'support',
  'sales',
  'marketing',
  'usenet',
  'news',
  'www',
  'uucp',
  'ftp',
  'billing',
  'owner',
  'staff',
  // Names that certificate authorities have mailed to validate a domain.
  'ssladmin',
  'ssladministrator',
  'sslwebmaster',
  'sysadmin',
  'is',
  'it',
  'mis',
]);

/** A dot-atom (RFC 5321) of characters that every system accepts. Plus-tags are excluded, because senders add them. */
const USERNAME_PATTERN = /^[a-z0-9](?:[a-z0-9_-]|\.(?=[a-z0-9_-])){0,62}[a-z0-9_-]$|^[a-z0-9]$/;

const ADJECTIVES =
  'amber bold brave bright brisk calm clear clever cobalt coral crisp dapper eager early fair fleet gentle glad golden grand green happy hazel honest jolly keen kind light lively lucky lunar mellow merry mild neat nimble noble opal pearl plain proud quick quiet rapid royal ruby sage sharp silver smart smooth snug solar steady still sunny sure swift tidy true vivid warm wise witty';
const NOUNS =
  'badger beacon birch bison brook canyon cedar cliff comet condor cove crane creek delta dune eagle ember falcon fern finch fjord forest fox galaxy garnet glade harbor hawk heron hill ibis island jaguar juniper kestrel lagoon lake lark lemur lion lynx maple meadow mesa meteor moose nova oak ocean orca orchid osprey otter owl panda pebble pine planet puffin quartz raven reef river robin';

/**
 * Parses and validates the address of a new inbox. Does not check whether a custom domain belongs to the organization.
 *
 * @param path the place of `email` in the request, for errors.
 * @throws AppError `validation_error`.
 */
export function parseInboxAddress(
  requested: AddressRequest,
  sharedDomain: string,
  path = '/body/email',
): InboxAddress {
  if (requested.email !== undefined) {
    const at = requested.email.lastIndexOf('@');
    if (at < 1) throw invalid(path, 'is not an email address', 'Use an address such as name@domain.');
    return validateAddress(path, requested.email.slice(0, at), requested.email.slice(at + 1), sharedDomain);
  }
  const username = requested.username ?? randomUsername();
  return validateAddress('/body/username', username, requested.domain ?? sharedDomain, sharedDomain);
}

function validateAddress(
  path: string,
  localPart: string,
  domainPart: string,
  sharedDomain: string,
): InboxAddress {
  const username = localPart.toLowerCase();
  // Normalize before comparing: `agents.example.` and its full-width spelling are also the shared domain.
  const normalized = toDomainKey(domainPart);
  const shared = normalized !== null && normalized === toDomainKey(sharedDomain);
  const domain = shared ? normalized : parseCustomDomain(domainPart);
  if (username.includes('+'))
    throw invalid(
      path,
      'must not contain a plus-tag',
      'Remove the plus-tag: mail to name+tag is delivered to the inbox name.',
    );
  if (!USERNAME_PATTERN.test(username))
    throw invalid(
      path,
      'must be 1 to 64 letters, digits, dots, dashes and underscores, starting with a letter or digit',
      'Choose another name, or omit it for a random one.',
    );
  if (isReserved(username, shared))
    throw invalid(path, 'is reserved', 'Choose another name, or omit it for a random one.');
  return { email: `${username}@${domain}`, username, domain };
}

function isReserved(username: string, isShared: boolean): boolean {
  return (
    isReservedEverywhere(username) || (isShared && RESERVED_ON_SHARED_DOMAIN.has(withoutSeparators(username)))
  );
}

/** Whether no inbox of any domain may have the name, nor receive its mail. */
export const isReservedEverywhere = (username: string): boolean =>
  RESERVED_USERNAMES.has(withoutSeparators(username));

const withoutSeparators = (username: string): string => username.replace(/[._-]/g, '');

/** Returns the address as stored for inboxes: in lower case, without a plus-tag. */
export function baseAddress(address: string): string {
  const at = address.lastIndexOf('@');
  const local = address.slice(0, at).split('+', 1)[0] ?? '';
  return `${local}${address.slice(at)}`.toLowerCase();
}

/** Reports a malformed domain like an unverified one, because the caller's next step is the same. */
function parseCustomDomain(input: string): string {
  const parsed = parseDomainName(input);
  if ('problem' in parsed) throw domainNotVerified(input);
  return parsed.name;
}

export function domainNotVerified(domain: string): AppError {
  return new AppError('domain_not_verified', {
    detail: `The domain ${domain.slice(0, 255)} is not verified for this organization.`,
    fix: 'Add the domain (POST /api/v1/domains) and verify it first (POST /api/v1/domains/{id}/verify), or use an address on the shared domain.',
  });
}

/** Returns a name such as `amber-falcon-4821`, which is easy to read aloud; one of 40 million. */
function randomUsername(): string {
  return `${pickWord(ADJECTIVES)}-${pickWord(NOUNS)}-${randomInt(1_000, 10_000)}`;
}

function pickWord(words: string): string {
  const list = words.split(' ');
  return list[randomInt(list.length)] ?? words;
}
