import type { Database } from '../../platform/database/database.ts';
import { findRow, type RowReader } from '../../platform/database/find-rows.ts';
import type { Scope } from '../identity/scope.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import { ThreadEntity } from '../messages/thread.entity.ts';
import type { HtmlConverter } from '../mime/converter/pool.ts';
import { toReplySubject } from '../mime/subject.ts';
import { MAX_BODY_BYTES } from '../outbound/outbound-content.ts';
import type { DraftDetails } from './create-draft.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';
import { draftNotFound, loadDetailsForAll, withinReach } from './find-draft.ts';

/** A draft as its recipient will see it. */
export interface DraftPreview extends DraftDetails {
  /** Address of the inbox, which is the sender. */
  fromAddress: string;
  /** With the `Re:` that a reply gets. */
  subject: string;
  /** Sanitized; null if the draft has no HTML. */
  html: string | null;
  /** Made from the HTML if the draft has no text; null if it has neither. */
  text: string | null;
}

export interface DraftPreviewService {
  /** @throws AppError `not_found`. */
  get(scope: Scope, draftId: string): Promise<DraftPreview>;
}

export function createDraftPreviewService({
  database,
  converter,
}: {
  database: Database;
  converter: Pick<HtmlConverter, 'sanitize' | 'toText'>;
}): DraftPreviewService {
  return {
    async get(scope, draftId) {
      const found = await database.read(scope, async (reader) => {
        const where = withinReach(scope);
        const draft = await findRow(reader, DraftEntity, { where: { id: draftId, ...where } });
        if (!draft) throw await draftNotFound(reader, draftId, where);
        const [details] = await loadDetailsForAll(reader, [draft]);
        const inbox = await findRow(reader, InboxEntity, { where: { id: draft.inboxId } });
        return {
          ...(details as DraftDetails),
          fromAddress: inbox?.email ?? '',
          subject: await previewSubject(reader, draft),
        };
      });
      // A conversion may take a second, so no transaction waits for it.
      const { htmlBody, textBody } = found.draft;
      const sanitize = (html: string) =>
        converter.sanitize(html, { maxBytes: MAX_BODY_BYTES, keepInlineImages: false });
      return {
        ...found,
        html: htmlBody === null ? null : await sanitize(htmlBody),
        text: textBody ?? (htmlBody === null ? null : await converter.toText(htmlBody)),
      };
    },
  };
}

/** The subject that the send gives it. A target that does not exist is an error of the send, not of the preview. */
async function previewSubject(reader: RowReader, draft: Readonly<Draft>): Promise<string> {
  const { inReplyTo, threadId, inboxId } = draft;
  if (draft.submission || (inReplyTo === null && threadId === null)) return draft.subject ?? '';
  const parentId = inReplyTo ?? (await findLastMessageId(reader, inboxId, threadId ?? ''));
  const parent = await findRow(reader, MessageEntity, { where: { id: parentId ?? '', inboxId } });
  return parent ? toReplySubject(draft.subject ?? parent.subject) : (draft.subject ?? '');
}

async function findLastMessageId(
  reader: RowReader,
  inboxId: string,
  threadId: string,
): Promise<string | null> {
  const thread = await findRow(reader, ThreadEntity, { where: { id: threadId, inboxId } });
  return thread?.lastMessageId ?? null;
}
