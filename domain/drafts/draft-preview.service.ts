import type { Database } from '../../platform/database/database.ts';
import { findRow } from '../../platform/database/find-rows.ts';
import type { Scope } from '../identity/scope.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import type { HtmlConverter } from '../mime/converter/pool.ts';
import { MAX_BODY_BYTES } from '../outbound/outbound-content.ts';
import type { DraftDetails } from './create-draft.ts';
import { DraftEntity } from './draft.entity.ts';
import { draftNotFound, loadDetailsForAll, withinReach } from './find-draft.ts';

/** A draft as its recipient will see it. */
export interface DraftPreview extends DraftDetails {
  /** Address of the inbox, which is the sender. */
  fromAddress: string;
  /** Sanitized; null if the draft has no HTML. */
  html: string | null;
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
  converter: Pick<HtmlConverter, 'sanitize'>;
}): DraftPreviewService {
  return {
    async get(scope, draftId) {
      const { draft, attachments, fromAddress } = await database.read(scope, async (reader) => {
        const where = withinReach(scope);
        const found = await findRow(reader, DraftEntity, { where: { id: draftId, ...where } });
        if (!found) throw await draftNotFound(reader, draftId, where);
        const [details] = await loadDetailsForAll(reader, [found]);
        const inbox = await findRow(reader, InboxEntity, { where: { id: found.inboxId } });
        return { ...(details as DraftDetails), fromAddress: inbox?.email ?? '' };
      });
      // The conversion may take a second, so no transaction waits for it.
      const html =
        draft.htmlBody === null
          ? null
          : await converter.sanitize(draft.htmlBody, { maxBytes: MAX_BODY_BYTES, keepInlineImages: false });
      return { draft, attachments, fromAddress, html };
    },
  };
}
