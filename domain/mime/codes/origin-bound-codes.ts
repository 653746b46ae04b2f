/** A code that its sender binds to a web site. */
export interface OriginBoundCode {
  value: string;
  originDomain: string;
  /** As it is written. */
  line: string;
}

const DOMAIN = '(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.){1,10}[a-z][a-z0-9-]{1,62}';
const CODE = '[A-Za-z0-9]{4,12}';
/** `@example.com #123456`, possibly with an embedded origin (WICG, "Origin-bound one-time codes delivered via SMS"). */
const LINE = new RegExp(`^@(${DOMAIN}) #(${CODE})(?: @${DOMAIN})?$`, 'i');
const DOMAIN_VALUE = new RegExp(`^${DOMAIN}$`, 'i');
const CODE_VALUE = new RegExp(`^${CODE}$`);
const MAX_FIELD = 500;

/**
 * Reads the header field `One-Time-Code: code=123456; origin=example.com` (draft-wells-origin-bound-one-time-codes,
 * section 3.2).
 */
export function readCodeField(value: string): OriginBoundCode | null {
  const line = value.slice(0, MAX_FIELD).trim();
  const tags = new Map(
    line.split(';').map((tag) => {
      const at = tag.indexOf('=');
      return [tag.slice(0, Math.max(0, at)).trim().toLowerCase(), tag.slice(at + 1).trim()] as const;
    }),
  );
  const [code = '', origin = ''] = [tags.get('code'), tags.get('origin')];
  if (!CODE_VALUE.test(code) || !DOMAIN_VALUE.test(origin)) return null;
  return { value: code, originDomain: origin.toLowerCase(), line };
}

/** Reads the last line of a text. */
export function readLastLine(text: string): OriginBoundCode | null {
  const line = text.slice(-MAX_FIELD).trimEnd().split('\n').at(-1)?.trim() ?? '';
  const [, domain, code] = LINE.exec(line) ?? [];
  return domain && code ? { value: code, originDomain: domain.toLowerCase(), line } : null;
}
