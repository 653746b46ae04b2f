import type { Db } from '../../platform/database/tables.ts';
import type { Draft, ShownVersion } from './draft.entity.ts';

/** A draft that changes more often while it waits is compared with the oldest version kept. */
const MAX_VERSIONS = 20;
const MAX_KEPT_CHARACTERS = 64 * 1024;

/** Returns the versions that approvers could see since the draft started to wait. The last one is the current version. */
export async function extendHistory(
  db: Db,
  draft: Draft,
  { isWaiting }: { isWaiting: boolean },
): Promise<ShownVersion[]> {
  const earlier = isWaiting ? await readHistory(db, draft.id) : [];
  return [...earlier.filter(({ version }) => version < draft.version), toShownVersion(draft)].slice(
    -MAX_VERSIONS,
  );
}

export async function readHistory(db: Db, draftId: string): Promise<ShownVersion[]> {
  const row = await db
    .selectFrom('drafts')
    .select('approval_history as history')
    .where('id', '=', draftId)
    .executeTakeFirst();
  return row?.history ?? [];
}

export function toShownVersion({ version, subject, to, cc, bcc, ...bodies }: Draft): ShownVersion {
  const text = bodies.textBody;
  const html = text === null ? bodies.htmlBody : null;
  const isTooLong = (text ?? html ?? '').length > MAX_KEPT_CHARACTERS;
  return {
    version,
    subject,
    to,
    cc,
    bcc,
    text: isTooLong ? null : text,
    html: isTooLong ? null : html,
    isTooLong,
  };
}
