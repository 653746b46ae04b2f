import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Row, RowReader } from '../../platform/database/find-rows.ts';
import type { Draft, ShownVersion } from './draft.entity.ts';

/** A draft that changes more often than that while it waits is compared with the oldest version kept. */
const MAX_VERSIONS = 20;
const MAX_KEPT_CHARACTERS = 64 * 1024;

/** Returns the versions that were shown since the draft waits, with its present one as the last. */
export async function extendHistory(
  em: EntityManager,
  draft: Draft,
  { isWaiting }: { isWaiting: boolean },
): Promise<ShownVersion[]> {
  const earlier = isWaiting ? await readHistory(em, draft.id) : [];
  return [...earlier.filter(({ version }) => version < draft.version), toShownVersion(draft)].slice(
    -MAX_VERSIONS,
  );
}

export async function readHistory(em: Pick<RowReader, 'execute'>, draftId: string): Promise<ShownVersion[]> {
  const [row] = await em.execute<{ history: ShownVersion[] | null }[]>(
    sql`select approval_history as history from drafts where id = ${draftId}`,
  );
  return row?.history ?? [];
}

export function toShownVersion({ version, subject, to, cc, bcc, ...bodies }: Row<Draft>): ShownVersion {
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
