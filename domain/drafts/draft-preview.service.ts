import type { Database } from '../../platform/database/database.ts';
import type { RequesterProblem } from '../identity/requester.ts';
import type { Scope } from '../identity/scope.ts';
import type { HtmlConversions, HtmlConverter } from '../mime/converter/pool.ts';
import { toReplySubject } from '../mime/subject.ts';
import { MAX_BODY_BYTES } from '../outbound/outbound-content.ts';
import { senderAddress } from '../outbound/sender-address.ts';
import { readHistory, toShownVersion } from './approval-history.ts';
import type { ShownVersion } from './draft.entity.ts';
import { findSendProblem } from './draft-requester.ts';
import { type DraftDetails, findDraft, loadDetailsForAll, withinReach } from './find-draft.ts';
import { findReplyParent } from './reply-parent.ts';
import { compareTexts, type DifferenceLine } from './text-difference.ts';

/** A draft as its recipient will see it. */
export interface DraftPreview extends DraftDetails {
  /** The sender: the address of the inbox, or for a reply the alias that was written to. */
  fromAddress: string;
  /** For a reply, with `Re:`. */
  subject: string;
  /** Sanitized; null if the draft has no HTML. */
  html: string | null;
  /** Made from the HTML if the draft has no text; null if it has neither. */
  text: string | null;
  /**
   * Why the draft would not be sent after an approval: its requester may no longer send. Null unless the draft waits
   * for approval.
   */
  requesterProblem: RequesterProblem | null;
}

/** What changed in a draft between two versions that waited for approval. */
export interface DraftComparison {
  fromVersion: number;
  toVersion: number;
  fields: { field: ComparedField; lines: DifferenceLine[] }[];
  /** The text of one of the versions is too long to be compared. */
  isTextTooLong: boolean;
}

export const COMPARED_FIELDS = ['subject', 'to', 'cc', 'bcc', 'text'] as const;
export type ComparedField = (typeof COMPARED_FIELDS)[number];

export type DraftPreviewService = ReturnType<typeof createDraftPreviewService>;

export function createDraftPreviewService({
  database,
  converter,
}: {
  database: Database;
  converter: Pick<HtmlConverter, 'forOrganization'>;
}) {
  return {
    /** @throws AppError `not_found`. */
    async get(scope: Scope, draftId: string): Promise<DraftPreview> {
      const found = await database.read(scope, async ({ db }) => {
        const draft = await findDraft(db, draftId, withinReach(scope));
        const [details] = await loadDetailsForAll(db, [draft]);
        const inbox = await db
          .selectFrom('inboxes')
          .select(['email', 'aliases'])
          .where('id', '=', draft.inboxId)
          .executeTakeFirst();
        const parent = await findReplyParent(db, draft);
        return {
          ...(details as DraftDetails),
          fromAddress: inbox ? senderAddress(inbox, parent) : '',
          subject: parent ? toReplySubject(draft.subject ?? parent.subject) : (draft.subject ?? ''),
          requesterProblem:
            draft.sendStatus === 'pending_approval'
              ? ((await findSendProblem(db, draft))?.problem ?? null)
              : null,
        };
      });
      // A conversion may take a second, so no transaction waits for it.
      const { htmlBody, textBody } = found.draft;
      const conversions = converter.forOrganization(scope.organizationId);
      const sanitize = (html: string) =>
        conversions.sanitize(html, { maxBytes: MAX_BODY_BYTES, keepInlineImages: false });
      return {
        ...found,
        html: htmlBody === null ? null : await sanitize(htmlBody),
        text: textBody ?? (htmlBody === null ? null : await conversions.toText(htmlBody)),
      };
    },

    /**
     * Compares the draft with an earlier version that waited for approval.
     *
     * @param seenVersion if undefined or no longer kept, the oldest version kept is used.
     * @returns null if the draft does not wait or has not changed.
     * @throws AppError `not_found`.
     */
    async compare(scope: Scope, draftId: string, seenVersion?: number): Promise<DraftComparison | null> {
      const { draft, history } = await database.read(scope, async ({ db }) => ({
        draft: await findDraft(db, draftId, withinReach(scope)),
        history: await readHistory(db, draftId),
      }));
      if (draft.sendStatus !== 'pending_approval') return null;
      const earlier = history.filter(({ version }) => version < draft.version);
      const seen = earlier.findLast(({ version }) => version === seenVersion) ?? earlier[0];
      if (!seen || (seenVersion !== undefined && seenVersion >= draft.version)) return null;
      const current = toShownVersion(draft);
      const conversions = converter.forOrganization(scope.organizationId);
      const [before, after] = [await toTexts(conversions, seen), await toTexts(conversions, current)];
      const isTextTooLong = seen.isTooLong || current.isTooLong;
      return {
        fromVersion: seen.version,
        toVersion: draft.version,
        fields: COMPARED_FIELDS.filter((field) => field !== 'text' || !isTextTooLong)
          .map((field) => ({ field, lines: compareTexts(before[field], after[field]) }))
          .filter(({ lines }) => lines.length > 0),
        isTextTooLong,
      };
    },
  };

  async function toTexts(
    conversions: HtmlConversions,
    shown: ShownVersion,
  ): Promise<Record<ComparedField, string>> {
    const { subject, to, cc, bcc, text, html } = shown;
    return {
      subject: subject ?? '',
      to: toAddressLines(to),
      cc: toAddressLines(cc),
      bcc: toAddressLines(bcc),
      text: text ?? (html === null ? '' : await conversions.toText(html)),
    };
  }
}

/** Sorted, because the order of recipients has no meaning. */
const toAddressLines = (addresses: ShownVersion['to']): string =>
  addresses
    .map(({ email }) => email)
    .sort()
    .join('\n');
