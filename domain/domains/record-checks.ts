/** What a look saw of one record. */
export interface Observation {
  status: 'missing' | 'invalid' | 'valid';
  /** What is published instead, or as well; null where nothing of the kind is. At most {@link MAX_FOUND_LENGTH} characters. */
  found: string | null;
}

/** Looks at what is published under a record's name: TXT as joined text, MX as `priority host`. */
export type RecordEvaluator = (published: string[]) => Observation;

export const MAX_FOUND_LENGTH = 1024;

/** One of the texts is the token, whatever else is there: other claims to the name publish theirs beside it. */
export const isOwnershipRecord =
  (value: string): RecordEvaluator =>
  (published) =>
    observe(published, (texts) => texts.some((text) => text.trim() === value));

/**
 * The one SPF record names our mechanism before its `all` (RFC 7208: two records are a permanent error, terms behind
 * `all` count for nothing, names and mechanisms have no case).
 */
export const isSpfRecord =
  (mechanism: string): RecordEvaluator =>
  (published) =>
    observe(
      published.filter((text) => /^v=spf1(?:\s|$)/i.test(text.trim())),
      ([record = '', ...others]) => {
        const terms = record.trim().toLowerCase().split(/\s+/).slice(1);
        const all = terms.findIndex((term) => /^[+?~-]?all$/.test(term));
        const counted = all === -1 ? terms : terms.slice(0, all);
        return others.length === 0 && counted.some((term) => sameTerm(term, mechanism));
      },
    );

function sameTerm(term: string, mechanism: string): boolean {
  const bare = (text: string) => text.toLowerCase().replace(/^\+/, '').replace(/\.$/, '');
  return bare(term) === bare(mechanism);
}

/**
 * The one record of the selector carries our public key, exactly (RFC 6376 section 3.6.1). Order, case of the names and
 * white space are the publisher's. A key in testing (`t=y`) counts for nothing at receivers, so it does not here.
 */
export const isDkimRecord =
  (publicKey: string): RecordEvaluator =>
  (published) =>
    observe(published, ([record = '', ...others]) => {
      const tags = readTags(record);
      if (!tags || others.length > 0) return false;
      const listed = (name: string) => tags.get(name)?.toLowerCase().split(':');
      return (
        (tags.get('v') ?? 'DKIM1') === 'DKIM1' &&
        (tags.get('k') ?? 'rsa').toLowerCase() === 'rsa' &&
        (listed('h')?.includes('sha256') ?? true) &&
        (listed('s')?.some((service) => service === '*' || service === 'email') ?? true) &&
        !listed('t')?.includes('y') &&
        tags.get('p') === publicKey
      );
    });

/** Any policy will do; it is the domain's own affair (RFC 7489 section 6.3: `v` comes first, `p` is named). */
export const isDmarcRecord: RecordEvaluator = (published) =>
  observe(
    published.filter((text) => /^\s*v\s*=\s*DMARC1\s*(?:;|$)/.test(text)),
    ([record = '', ...others]) =>
      others.length === 0 && /^(?:none|quarantine|reject)$/i.test(readTags(record)?.get('p') ?? ''),
  );

/** Our host is among those that take the domain's mail. */
export const isMxRecord =
  (host: string): RecordEvaluator =>
  (published) =>
    observe(published, (hosts) =>
      hosts.some(
        (entry) => entry.replace(/^\d+ /, '').replace(/\.$/, '').toLowerCase() === host.toLowerCase(),
      ),
    );

/** `a=b; c=d` (RFC 6376 section 3.2) with names in lower case and all white space taken out of values. Null: no such list. */
function readTags(text: string): Map<string, string> | null {
  const tags = new Map<string, string>();
  for (const part of text.split(';')) {
    if (part.trim() === '') continue;
    const at = part.indexOf('=');
    const name = part.slice(0, at).trim().toLowerCase();
    if (at < 1 || tags.has(name)) return null;
    tags.set(name, part.slice(at + 1).replace(/\s+/g, ''));
  }
  return tags;
}

function observe(candidates: string[], accept: (candidates: string[]) => boolean): Observation {
  if (candidates.length === 0) return { status: 'missing', found: null };
  // Control characters in a stranger's zone stay out of our answers and database.
  const found = candidates
    .join('\n')
    .slice(0, MAX_FOUND_LENGTH)
    .replace(/[^\P{Cc}\n]/gu, '\uFFFD')
    .toWellFormed();
  return { status: accept(candidates) ? 'valid' : 'invalid', found };
}
