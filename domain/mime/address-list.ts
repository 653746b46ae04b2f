import parseLeniently from 'nodemailer/lib/addressparser';
import { decodeEncodedWords } from './encoded-words.ts';
import type { MailAddress } from './mail-address.ts';

export interface AddressList {
  mailboxes: MailAddress[];
  /**
   * All programs find the same mailboxes in the field: it follows RFC 5322 section 3.4, including the obsolete forms,
   * or only the name before its single `<address>` violates it.
   */
  isClear: boolean;
}

/** Longer than 500 addresses. The rest of a field is ignored. */
const MAX_FIELD_CHARACTERS = 64 * 1024;
const MAX_ADDRESS_CHARACTERS = 1_024;

type TokenKind = 'atom' | 'quoted' | 'comment' | 'literal' | 'special' | 'invalid';

interface Token {
  kind: TokenKind;
  /** Without the delimiters and escapes of quoted strings and comments. */
  text: string;
  isSpaced: boolean;
}

/**
 * Reads the value of an address field (RFC 5322 sections 3.4 and 4.4): comments, groups, source routes and empty
 * elements included. For a field that does not follow the RFC, the result is that of a tolerant library.
 *
 * @param field decoded and unfolded, with U+FFFD for control characters.
 */
export function readAddressList(field: string): AddressList {
  const isCut = field.length > MAX_FIELD_CHARACTERS;
  const text = field.slice(0, MAX_FIELD_CHARACTERS);
  const tokens = tokenize(text);
  const strict = tokens.some(({ kind }) => kind === 'invalid') ? null : parseList(tokens);
  const mailboxes = strict ?? parseNamedAddress(tokens);
  return mailboxes === null
    ? { mailboxes: parseLeniently(text, { flatten: true }).map(toMailbox).filter(isUsable), isClear: false }
    : { mailboxes: mailboxes.filter(isUsable), isClear: !isCut && mailboxes.every(isUsable) };
}

/** A tolerant library also reads `<MAILER-DAEMON>`, which is no address. */
const isUsable = ({ email }: MailAddress): boolean =>
  email.includes('@') && email.length <= MAX_ADDRESS_CHARACTERS;

function toMailbox({ address = '', name = '' }: { address?: string; name?: string }): MailAddress {
  // Encoded words may also contain control characters.
  const decoded = replaceControls(decodeEncodedWords(name)).trim().slice(0, MAX_ADDRESS_CHARACTERS);
  return { email: replaceControls(address), ...(decoded === '' ? {} : { name: decoded }) };
}

/**
 * Replaces control characters other than white space within a line, because they could hide a part of the displayed
 * text.
 */
export function replaceControls(text: string): string {
  return text.replace(/[^\P{Cc}\t]/gu, '\ufffd');
}

const SPECIALS = '<>@,;:.';
const isSpace = (character: string) =>
  character === ' ' || character === '\t' || character === '\r' || character === '\n';

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let isSpaced = false;
  for (let at = 0; at < text.length; ) {
    const character = text.charAt(at);
    if (isSpace(character)) {
      isSpaced = true;
      at += 1;
      continue;
    }
    const { end, ...token } = readToken(text, at);
    tokens.push({ ...token, isSpaced });
    isSpaced = false;
    at = end;
  }
  return tokens;
}

type ReadToken = Omit<Token, 'isSpaced'> & { end: number };

function readToken(text: string, at: number): ReadToken {
  const character = text.charAt(at);
  if (character === '"') return readDelimited(text, at, { kind: 'quoted', open: '', close: '"' });
  if (character === '(') return readDelimited(text, at, { kind: 'comment', open: '(', close: ')' });
  if (character === '[') return readDelimited(text, at, { kind: 'literal', open: '', close: ']' });
  if (SPECIALS.includes(character)) return { kind: 'special', text: character, end: at + 1 };
  ATOM.lastIndex = at;
  const atom = ATOM.exec(text)?.[0];
  // Only `)`, `]` and `\` remain.
  return atom
    ? { kind: 'atom', text: atom, end: at + atom.length }
    : { kind: 'invalid', text: '', end: at + 1 };
}

/** Printable characters without the specials of RFC 5322 section 3.2.3; RFC 6532 adds all non-ASCII characters. */
const ATOM = /[^\s()<>[\]:;@\\,."]+/uy;

/** Reads up to the end of a quoted string, comment or domain literal; `invalid` if there is no end. */
function readDelimited(
  text: string,
  start: number,
  { kind, open, close }: { kind: TokenKind; open: string; close: string },
): ReadToken {
  const pieces: string[] = [];
  let depth = 1;
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '\\') {
      at += 1;
      pieces.push(text.charAt(at));
      continue;
    }
    if (character === close) depth -= 1;
    else if (character === open) depth += 1;
    if (depth === 0) return { kind, text: pieces.join(''), end: at + 1 };
    pieces.push(character);
  }
  return { kind: 'invalid', text: '', end: text.length };
}

const isSpecial = (token: Token | undefined, character: string): boolean =>
  token?.kind === 'special' && token.text === character;

/** All mailboxes of a list; null if it does not follow the RFC. Some programs separate addresses by semicolons. */
function parseList(tokens: readonly Token[]): MailAddress[] | null {
  const mailboxes: MailAddress[] = [];
  let element: Token[] = [];
  let isInAngle = false;
  let isInGroup = false;
  const closeElement = (): boolean => {
    const isEmpty = element.every(({ kind }) => kind === 'comment');
    const mailbox = isEmpty ? null : parseMailbox(element);
    if (mailbox) mailboxes.push(mailbox);
    element = [];
    return isEmpty || mailbox !== null;
  };
  for (const token of tokens) {
    if (isSpecial(token, '<')) isInAngle = true;
    if (isSpecial(token, '>')) isInAngle = false;
    if (!isInAngle && isSpecial(token, ':')) {
      if (isInGroup || !element.some(({ kind }) => kind !== 'comment') || !isPhrase(element)) return null;
      isInGroup = true;
      element = [];
    } else if (!isInAngle && (isSpecial(token, ',') || isSpecial(token, ';'))) {
      if (!closeElement()) return null;
      if (token.text === ';') isInGroup = false;
    } else element.push(token);
  }
  return closeElement() && !isInGroup ? mailboxes : null;
}

function isPhrase(tokens: readonly Token[]): boolean {
  return tokens.every((token) => ['atom', 'quoted', 'comment'].includes(token.kind) || isSpecial(token, '.'));
}

/** `name <address>` or an address, with comments anywhere. */
function parseMailbox(tokens: readonly Token[]): MailAddress | null {
  const open = tokens.findIndex((token) => isSpecial(token, '<'));
  if (open === -1) {
    const address = parseAddress(tokens.filter(({ kind }) => kind !== 'comment'));
    // A comment is an old form of a name.
    const name = tokens.at(-1)?.kind === 'comment' ? tokens.at(-1)?.text : '';
    return address === null ? null : toMailbox({ address, name });
  }
  const phrase = tokens.slice(0, open);
  const address = parseAngle(tokens.slice(open));
  if (address === null || !isPhrase(phrase)) return null;
  return toMailbox({ address, name: joinPhrase(phrase.filter(({ kind }) => kind !== 'comment')) });
}

/** `<address>`, after an optional source route, which is ignored (section 4.4). */
function parseAngle(tokens: readonly Token[]): string | null {
  const inner = tokens.filter(({ kind }) => kind !== 'comment').slice(1);
  if (!isSpecial(inner.pop(), '>')) return null;
  const routeEnd = inner.findIndex((token) => isSpecial(token, ':'));
  const route = inner.slice(0, Math.max(0, routeEnd));
  if (routeEnd !== -1 && !isRoute(route)) return null;
  return parseAddress(inner.slice(routeEnd + 1));
}

function isRoute(tokens: readonly Token[]): boolean {
  return (
    tokens.some((token) => isSpecial(token, '@')) &&
    tokens.every(
      (token) => token.kind === 'atom' || (token.kind === 'special' && ['@', ',', '.'].includes(token.text)),
    )
  );
}

/** `local@domain`, with white space around dots (section 4.4). */
function parseAddress(tokens: readonly Token[]): string | null {
  const at = tokens.findIndex((token) => isSpecial(token, '@'));
  if (at < 1) return null;
  const local = tokens.slice(0, at);
  const domain = tokens.slice(at + 1);
  const [literal] = domain;
  const isLiteral = domain.length === 1 && literal?.kind === 'literal';
  if (!isLocalPart(local) || !(isLiteral || isDomain(domain))) return null;
  return `${formatLocalPart(local)}@${isLiteral ? `[${literal.text}]` : domain.map(({ text }) => text).join('')}`;
}

/** Words and dots. Some providers assigned addresses with two consecutive dots, or with a dot before the `@`. */
function isLocalPart(tokens: readonly Token[]): boolean {
  return tokens.every((token, at) => {
    if (isSpecial(token, '.')) return true;
    const previous = tokens[at - 1];
    return ['atom', 'quoted'].includes(token.kind) && (previous === undefined || isSpecial(previous, '.'));
  });
}

function isDomain(tokens: readonly Token[]): boolean {
  return (
    tokens.length % 2 === 1 &&
    tokens.every((token, at) => (at % 2 === 0 ? token.kind === 'atom' : isSpecial(token, '.')))
  );
}

function formatLocalPart(tokens: readonly Token[]): string {
  const text = tokens.map((token) => token.text).join('');
  const needsQuotes = tokens.some(({ kind }) => kind === 'quoted') && !/^[^\s()<>[\]:;@\\,"]+$/u.test(text);
  return needsQuotes ? `"${text.replace(/["\\]/g, '\\$&')}"` : text;
}

function joinPhrase(tokens: readonly Token[]): string {
  return tokens.map(({ text, isSpaced }, at) => (isSpaced && at > 0 ? ` ${text}` : text)).join('');
}

/**
 * The mailbox of a field whose name contains unquoted characters that must be quoted, as many programs write it:
 * `Doe, Jane <jane@example.com>`. Null if the field could mean another address.
 */
function parseNamedAddress(tokens: readonly Token[]): MailAddress[] | null {
  const open = tokens.findIndex((token) => isSpecial(token, '<'));
  if (open < 1 || tokens.some(({ kind }) => kind === 'invalid')) return null;
  const phrase = tokens.slice(0, open);
  const address = parseAngle(tokens.slice(open));
  if (address === null) return null;
  const name = joinPhrase(phrase.filter(({ kind }) => kind !== 'comment'));
  const isAddress = phrase.some((token) => isSpecial(token, '@'));
  if (isAddress && name.toLowerCase() !== address.toLowerCase()) return null;
  return [toMailbox({ address, name: isAddress ? '' : name })];
}
