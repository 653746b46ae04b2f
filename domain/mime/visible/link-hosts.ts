import { getDomain, parse } from 'tldts';

const MAX_TEXT_CHARACTERS = 300;
const MAX_URL_CHARACTERS = 4_000;
const URL_IN_TEXT = /(?:https?:\/\/|www\.)[^\s<>"'()]{1,255}/i;
const BARE_HOST = /^[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}\.?(?:[/?#:]\S*)?$/u;
/** Top-level domains that are also common endings of file names. */
const FILE_ENDINGS = /\.(?:md|py|rs|sh|pl|ps|zip|mov|cc|so|st|pub)$/i;
/** Services that rewrite links in transit, with the parameter that contains the original. */
const REWRITERS: [host: RegExp, parameter: string][] = [
  [/\.safelinks\.protection\.outlook\.com$/, 'url'],
  [/^www\.google\.[a-z.]{2,6}$/, 'q'],
  [/^(?:l|lm)\.facebook\.com$/, 'u'],
];

/**
 * Whether the words of a link show the host of another organization than the target's: `https://bank.example` with a
 * link to `https://evil.example`. Subdomains of one domain count as the same host.
 */
export function hasMismatchedHost(words: string, href: string): boolean {
  const shown = findShownHost(words.slice(0, MAX_TEXT_CHARACTERS).trim());
  if (shown === null) return false;
  const target = findTargetHost(href.slice(0, MAX_URL_CHARACTERS).trim());
  return target !== null && toOwner(shown) !== toOwner(target);
}

function findShownHost(words: string): string | null {
  const url = URL_IN_TEXT.exec(words)?.[0];
  if (url !== undefined) return toHost(/^https?:/i.test(url) ? url : `https://${url}`)?.hostname ?? null;
  if (!BARE_HOST.test(words) || FILE_ENDINGS.test(words)) return null;
  const host = toHost(`https://${words}`)?.hostname ?? '';
  const { isIcann, domain } = parse(host);
  return isIcann === true && domain !== null ? host : null;
}

function findTargetHost(href: string): string | null {
  const target = /^https?:/i.test(href) ? toHost(href) : null;
  if (target === null) return null;
  const rewriter = REWRITERS.find(([host]) => host.test(target.hostname));
  const original = rewriter && target.searchParams.get(rewriter[1]);
  return (original ? toHost(original)?.hostname : undefined) ?? target.hostname;
}

function toHost(url: string): URL | null {
  return URL.canParse(url) ? new URL(url) : null;
}

function toOwner(host: string): string {
  const name = host.replace(/\.$/, '');
  return getDomain(name, { allowPrivateDomains: true }) ?? name;
}
