/** What DNS has published for one record. */
export interface Observation {
  status: 'missing' | 'invalid' | 'valid';
  /** The published text, at most {@link MAX_FOUND_LENGTH} characters; null if there is none of this kind. */
  found: string | null;
}

/** Evaluates what is published under a record's name: TXT as joined text, MX as `priority host`. */
export type RecordEvaluator = (published: string[]) => Observation;

export const MAX_FOUND_LENGTH = 1024;

/** One of the texts must be the token. Other texts are allowed, because other claims to the name publish theirs there too. */
export const isOwnershipRecord =
  (value: string): RecordEvaluator =>
  (published) =>
    buildObservation(published, (texts) => texts.some((text) => text.trim() === value));

/**
 * The only SPF record must contain the mechanism before `all` (RFC 7208: several records are a permanent error, terms after
 * `all` are ignored, names and mechanisms are case-insensitive).
 */
export const isSpfRecord =
  (mechanism: string): RecordEvaluator =>
  (published) =>
    buildObservation(
      published.filter((text) => /^v=spf1(?:\s|$)/i.test(text.trim())),
      ([record = '', ...others]) => {
        const terms = record.trim().toLowerCase().split(/\s+/).slice(1);
        const all = terms.findIndex((term) => /^[+?~-]?all$/.test(term));
        const effectiveTerms = all === -1 ? terms : terms.slice(0, all);
        return others.length === 0 && effectiveTerms.some((term) => equalsTerm(term, mechanism));
      },
    );

function equalsTerm(term: string, mechanism: string): boolean {
  const normalize = (text: string) => text.toLowerCase().replace(/^\+/, '').replace(/\.$/, '');
  return normalize(term) === normalize(mechanism);
}

/**
 * The only record of the selector must contain exactly the public key (RFC 6376 section 3.6.1). Tag order, case of tag names
 * and white space do not matter. Receivers ignore a key in testing mode (`t=y`), so it is invalid here.
 */
export const isDkimRecord =
  (publicKey: string): RecordEvaluator =>
  (published) =>
    buildObservation(published, ([record = '', ...others]) => {
      const tags = readTags(record);
      if (!tags || others.length > 0) return false;
      const tagList = (name: string) => tags.get(name)?.toLowerCase().split(':');
      return (
        (tags.get('v') ?? 'DKIM1') === 'DKIM1' &&
        (tags.get('k') ?? 'rsa').toLowerCase() === 'rsa' &&
        (tagList('h')?.includes('sha256') ?? true) &&
        (tagList('s')?.some((service) => service === '*' || service === 'email') ?? true) &&
        !tagList('t')?.includes('y') &&
        tags.get('p') === publicKey
      );
    });

/** Accepts any valid policy (RFC 7489 section 6.3: `v` comes first, `p` is required). */
export const isDmarcRecord: RecordEvaluator = (published) =>
  buildObservation(
    published.filter((text) => /^\s*v\s*=\s*DMARC1\s*(?:;|$)/.test(text)),
    ([record = '', ...others]) =>
      others.length === 0 && /^(?:none|quarantine|reject)$/i.test(readTags(record)?.get('p') ?? ''),
  );

/** The host must be one of the domain's mail exchangers. */
export const isMxRecord =
  (host: string): RecordEvaluator =>
  (published) =>
    buildObservation(published, (hosts) =>
      hosts.some(
        (entry) => entry.replace(/^\d+ /, '').replace(/\.$/, '').toLowerCase() === host.toLowerCase(),
      ),
    );

/** Parses `a=b; c=d` (RFC 6376 section 3.2): names in lower case, values without white space. Returns null if malformed. */
function readTags(text: string): Map<string, string> | null {
  const tags = new Map<string, string>();
  for (const part of text.split(';')) {
    if (part.trim() === '') continue;
    const separator = part.indexOf('=');
    const name = part.slice(0, separator).trim().toLowerCase();
    if (separator < 1 || tags.has(name)) return null;
    tags.set(name, part.slice(separator + 1).replace(/\s+/g, ''));
  }
  return tags;
}

function buildObservation(candidates: string[], accept: (candidates: string[]) => boolean): Observation {
  if (candidates.length === 0) return { status: 'missing', found: null };
  // Keeps control characters from foreign zones out of responses and the database.
  const found = candidates
    .join('\n')
    .slice(0, MAX_FOUND_LENGTH)
    .replace(/[^\P{Cc}\n]/gu, '\uFFFD')
    .toWellFormed();
  return { status: accept(candidates) ? 'valid' : 'invalid', found };
}
