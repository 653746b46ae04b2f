import { findAddress } from './addresses-in-text.ts';
import { type LeafPart, parseFields } from './leaf-parts.ts';

export interface RejectedByFilter {
  /** Null if the notification names none. */
  recipient: string | null;
}

const DISPOSITION_TYPES = /^(?:message\/(?:global-)?disposition-notification)$/;
/** RFC 3798 section 3.2.6: the types `denied` and `failed`, and the modifiers of a failure. */
const FAILED = /;\s*(?:denied|failed)\b|\/\s*(?:error|failure|failed|denied)\b/i;
const DELETED = /;\s*deleted\b/i;
/** Mail programs also report as deleted what their user deleted without reading it. */
const REJECTED =
  /\(rejected\)|\b(?:rejected|refused|returned|undeliverable|not (?:be )?(?:delivered|accepted))\b|abgelehnt|zurückgewiesen|rejeté|refusé|rechazad|rejeitad|rifiutat|respint|geweigerd|avvisa|odrzucon|отклонен|拒否|拒绝|拒絕/iu;
const MAX_SEARCHED_CHARACTERS = 2_000;

/**
 * Recognizes a disposition notification that reports a rejection: with Sieve's `reject` (RFC 5429), mail systems accept
 * a message and then return it as "deleted". Any other notification is a receipt.
 */
export function findRejectionByFilter(
  fields: Map<string, string>,
  leaves: LeafPart[],
  text: string,
): RejectedByFilter | null {
  const part = leaves.find(({ contentType }) => DISPOSITION_TYPES.test(contentType));
  if (!part) return null;
  const report = parseFields(part.content.replace(/\n{2,}/g, '\n'));
  const disposition = (report.get('disposition') ?? '').slice(0, MAX_SEARCHED_CHARACTERS);
  const said = [fields.get('auto-submitted') ?? '', fields.get('subject') ?? '', text]
    .map((value) => value.slice(0, MAX_SEARCHED_CHARACTERS))
    .join('\n');
  if (!FAILED.test(disposition) && !(DELETED.test(disposition) && REJECTED.test(said))) return null;
  return {
    recipient:
      findAddress(report.get('final-recipient') ?? '') ?? findAddress(report.get('original-recipient') ?? ''),
  };
}
