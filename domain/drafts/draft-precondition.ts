import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Scope } from '../identity/scope.ts';
import { HAS_ALARM_IN_FORCE } from '../messages/injection-alarms.ts';
import type { Draft } from './draft.entity.ts';
import { versionConflict } from './find-draft.ts';

/** The versions that `If-Match` names; `any`: `*`. */
export type IfMatch = 'any' | readonly number[];

/** The version of a draft that a request is based on. */
export interface DraftPrecondition {
  ifMatch?: IfMatch | undefined;
  /** From the body. */
  version?: number | undefined;
}

/** @throws AppError `precondition_failed` if `If-Match` names other versions, `conflict` if the body names another one. */
export function requirePrecondition(draft: Draft, { ifMatch, version }: DraftPrecondition): void {
  if (ifMatch !== undefined && ifMatch !== 'any' && !ifMatch.includes(draft.version))
    throw new AppError('precondition_failed', {
      detail: `If-Match does not name the version of the draft, which is now ${draft.version}.`,
      fix: `Fetch the draft (GET /api/v1/drafts/${draft.id}), look at its changes, and repeat the request with If-Match: "${draft.version}".`,
      extensions: { version: draft.version },
    });
  if (version !== undefined && version !== draft.version) throw versionConflict(draft);
}

/**
 * Under send approval, and after an injection alarm in the inbox, a draft that a person sends or schedules counts as reviewed.
 * So if an API key, for example, made or last changed the draft, the person must name its version.
 *
 * @throws AppError `precondition_required`.
 */
export async function requireSeenVersion(
  db: Db,
  { actor }: Pick<Scope, 'actor'>,
  draft: Draft,
  { ifMatch, version }: DraftPrecondition,
): Promise<void> {
  const isNamed = ifMatch !== undefined || version !== undefined;
  if (isNamed || actor.kind !== 'user' || draft.lastEditedByKind === 'user') return;
  if (!(await mayNeedApproval(db, draft))) return;
  throw new AppError('precondition_required', {
    detail:
      'No person made the last change of this draft, and a person must see what is sent: a policy of the organization, or an injection alarm in the inbox, demands it.',
    fix: `Review the draft, then repeat the request with the version that you saw: If-Match: "${draft.version}". POST /api/v1/drafts/${draft.id}/send also takes it in its body: {"version": ${draft.version}}.`,
    extensions: { version: draft.version },
  });
}

/** Whether a person might have to approve what keys send from the inbox of the draft. */
async function mayNeedApproval(db: Db, { inboxId }: Draft): Promise<boolean> {
  const found = await db
    .selectFrom('inboxes as i')
    .leftJoin('organization_policies as op', 'op.org_id', 'i.org_id')
    .select('i.id')
    .where('i.id', '=', inboxId)
    .where((eb) => eb.or([eb('op.require_send_approval', '<>', 'off'), HAS_ALARM_IN_FORCE]))
    .executeTakeFirst();
  return found !== undefined;
}
