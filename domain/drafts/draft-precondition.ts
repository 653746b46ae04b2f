import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Scope } from '../identity/scope.ts';
import { findPolicies } from '../policies/find-policies.ts';
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
 * Under send approval, a draft that a person sends or schedules counts as reviewed. So if an API key, for example, made
 * or last changed the draft, the person must name its version.
 *
 * @throws AppError `precondition_required`.
 */
export async function requireSeenVersion(
  db: Db,
  { actor, organizationId }: Pick<Scope, 'actor' | 'organizationId'>,
  draft: Draft,
  { ifMatch, version }: DraftPrecondition,
): Promise<void> {
  const isNamed = ifMatch !== undefined || version !== undefined;
  if (isNamed || actor.kind !== 'user' || draft.lastEditedByKind === 'user') return;
  const { requireSendApproval } = await findPolicies(db, organizationId);
  if (requireSendApproval === 'off') return;
  throw new AppError('precondition_required', {
    detail:
      'No person made the last change of this draft, and the organization requires that a person sees what is sent.',
    fix: `Review the draft, then repeat the request with the version that you saw: If-Match: "${draft.version}". POST /api/v1/drafts/${draft.id}/send also takes it in its body: {"version": ${draft.version}}.`,
    extensions: { version: draft.version },
  });
}
