import { getDomain } from 'tldts';
import { type Anchor, MAX_ANCHORS } from './anchors.ts';
import { deriveLinkKind, type LinkKind } from './link-kinds.ts';

/** A link of a received message. */
export interface FoundLink {
  url: string;
  /** The words of the link; those before it if it has none. */
  text: string;
  kind: LinkKind;
  /** The host of the URL, in ASCII. */
  host: string;
  /** The host and the sender's address belong to one registrable domain. */
  matchesSender: boolean;
}

export interface FoundLinks {
  /** Those that an agent may need, at most {@link MAX_KEY_LINKS}: verify, reset and sign_in first, never `other`. */
  links: FoundLink[];
  /** All links in their order, at most {@link MAX_LINKS}. */
  allLinks: FoundLink[];
  /** The message has more links. */
  hasMoreLinks: boolean;
}

export const MAX_KEY_LINKS = 5;
export const MAX_LINKS = 500;
/** Browsers and servers accept little more. */
export const MAX_URL_CHARACTERS = 8_192;
const MAX_TOTAL_CHARACTERS = 256 * 1024;
const MAX_TEXT = 200;
const MAX_BEFORE = 300;

export interface LinkSource {
  subject: string;
  /** The address of the author; undefined if there is none. */
  from: string | undefined;
  /** Visible text without quotes. */
  text: string;
  /** The links of the HTML body, if there is one. */
  anchors: readonly Anchor[];
}

const URL_IN_TEXT = /https?:\/\/[^\s<>"'`{}|\\^\p{Cc}]{1,9000}/giu;

/** Finds the links of a message. Nothing is fetched, and redirects are not followed. */
export function findLinks({ subject, from, text, anchors }: LinkSource): FoundLinks {
  const inText = readUrls(text);
  const shown = new Set(inText.map(({ href }) => href));
  // A forwarded message is marked as quoted, but is what the text shows.
  const visible = anchors.filter(({ href, isQuoted }) => !isQuoted || shown.has(href.trim()));
  const written = visible.some(({ href }) => /^\s*https?:/i.test(href)) ? visible : inText;
  const sender = from === undefined ? null : readOwner(from);
  const byUrl = new Map<string, FoundLink>();
  for (const anchor of written) {
    const link = toLink(anchor, { subject, sender });
    if (link === null) continue;
    const known = byUrl.get(link.url);
    if (!known) byUrl.set(link.url, link);
    // A picture and a button may have the same target.
    else if (known.kind === 'other' && link.kind !== 'other')
      byUrl.set(link.url, { ...link, text: link.text || known.text });
    else if (known.text === '') known.text = link.text;
  }
  const all = [...byUrl.values()];
  const allLinks = takeWithin(all);
  return {
    links: selectKeyLinks(all),
    allLinks,
    hasMoreLinks: allLinks.length < all.length || anchors.length >= MAX_ANCHORS,
  };
}

const PRIORITY: Record<LinkKind, number> = {
  verify: 0,
  reset: 0,
  sign_in: 1,
  invite: 2,
  calendar: 3,
  unsubscribe: 4,
  other: 5,
};

/** The sort keeps the order of links of one priority. */
function selectKeyLinks(all: readonly FoundLink[]): FoundLink[] {
  return all
    .filter(({ kind }) => kind !== 'other')
    .sort((a, b) => PRIORITY[a.kind] - PRIORITY[b.kind])
    .slice(0, MAX_KEY_LINKS);
}

function takeWithin(all: readonly FoundLink[]): FoundLink[] {
  let characters = 0;
  const end = all.findIndex(({ url, text, host }, at) => {
    characters += url.length + text.length + host.length;
    return at >= MAX_LINKS || characters > MAX_TOTAL_CHARACTERS;
  });
  return end === -1 ? [...all] : all.slice(0, end);
}

function toLink(
  { href, words, before }: Anchor,
  { subject, sender }: { subject: string; sender: string | null },
): FoundLink | null {
  const web = readWebUrl(href);
  if (web === null) return null;
  const { url, host } = web;
  const text = (words || before.slice(-MAX_TEXT)).trim().slice(0, MAX_TEXT);
  return {
    url,
    text,
    kind: deriveLinkKind({ words, before, url, subject }),
    host,
    matchesSender: sender !== null && toOwner(host) === sender,
  };
}

function readWebUrl(href: string): { url: string; host: string } | null {
  // Browsers ignore these characters.
  const url = href.trim().replace(/[\t\r\n]/g, '');
  if (!/^https?:\/\//i.test(url) || url.length > MAX_URL_CHARACTERS) return null;
  const host = URL.parse(url)?.hostname.toLowerCase();
  return host ? { url, host } : null;
}

/** A link that a person is about to open. */
export interface ShownUrl {
  url: string;
  /** In ASCII; null for an address of mail or a telephone number. */
  host: string | null;
  /** See `FoundLink`. */
  matchesSender: boolean;
}

/** @returns null for any other link than to the web, to an address of mail or to a telephone number. */
export function describeUrl(href: string, from: string): ShownUrl | null {
  const web = readWebUrl(href);
  if (web) return { ...web, matchesSender: toOwner(web.host) === readOwner(from) };
  const url = href.trim();
  if (!/^(?:mailto|tel):/i.test(url) || url.length > MAX_URL_CHARACTERS) return null;
  return { url, host: null, matchesSender: false };
}

const readOwner = (from: string): string | null => toOwner(from.slice(from.lastIndexOf('@') + 1));

/** The URLs of plain text, with the line before each. */
function readUrls(text: string): Anchor[] {
  const found: Anchor[] = [];
  for (const { 0: match, index } of text.matchAll(URL_IN_TEXT)) {
    if (found.length >= MAX_ANCHORS) break;
    const before = text.slice(Math.max(0, index - MAX_BEFORE), index);
    const lines = before.split('\n').map((line) => line.replace(URL_IN_TEXT, '').replace(/\s+/g, ' '));
    const label = lines.findLast((line) => /[\p{L}\p{N}]/u.test(line)) ?? '';
    found.push({
      href: trimUrl(match, text[index - 1]),
      words: '',
      before: label.replace(/[<([\s]+$/, '').trim(),
      isQuoted: false,
    });
  }
  return found;
}

/** Removes what belongs to the sentence around a URL. */
function trimUrl(url: string, before: string | undefined): string {
  const end = before === '(' && !url.includes('(') ? url.replace(/\){1,5}$/, '') : url;
  return end.replace(/[.,;:!?'"*_~\])}。，、；：！？」』】）]{1,10}$/u, (tail) =>
    tail.startsWith(')') && url.includes('(') ? tail : '',
  );
}

/** The domain that someone registered: two hosts below it belong to one owner. */
function toOwner(host: string): string | null {
  const name = host.toLowerCase().replace(/\.$/, '');
  return name === '' ? null : (getDomain(name, { allowPrivateDomains: true }) ?? name);
}
