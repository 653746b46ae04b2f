import type { Db } from '../../platform/database/tables.ts';
import { findRequesterProblem, type RequesterProblem } from '../identity/requester.ts';
import type { Actor } from '../identity/scope.ts';
import type { Draft } from './draft.entity.ts';

type RequestedDraft = Pick<
  Draft,
  | 'id'
  | 'organizationId'
  | 'environmentId'
  | 'inboxId'
  | 'version'
  | 'requestedByKind'
  | 'requestedById'
  | 'approvedVersion'
  | 'decidedById'
>;

/** Who may no longer send or approve a draft, and why. */
export interface SendProblem {
  act: 'send' | 'approval';
  /** Null if the requester is unknown. */
  actor: Actor | null;
  problem: RequesterProblem;
}

/** The requester of the send. An unknown requester counts as an agent. */
export function requesterOf(draft: Pick<Draft, 'id' | 'requestedByKind' | 'requestedById'>): Actor {
  return findRequester(draft) ?? { kind: 'system', id: draft.id };
}

const findRequester = ({
  requestedByKind,
  requestedById,
}: Pick<Draft, 'requestedByKind' | 'requestedById'>): Actor | null =>
  requestedByKind && requestedById ? { kind: requestedByKind, id: requestedById } : null;

/**
 * Checks again whether the draft may be sent: its requester may still send from the inbox, and the approver of this
 * version may still approve.
 *
 * @param options.lock see {@link findRequesterProblem}.
 */
export async function findSendProblem(
  db: Db,
  draft: RequestedDraft,
  options: { lock?: boolean } = {},
): Promise<SendProblem | null> {
  const { organizationId, environmentId, inboxId } = draft;
  const actor = findRequester(draft);
  const place = { environmentId, inboxIds: [inboxId] };
  const problem = await findRequesterProblem(db, { organizationId, actor }, { act: 'send', place }, options);
  if (problem) return { act: 'send', actor, problem };
  return findApprovalProblem(db, draft, options);
}

async function findApprovalProblem(
  db: Db,
  { organizationId, version, approvedVersion, decidedById }: RequestedDraft,
  options: { lock?: boolean },
): Promise<SendProblem | null> {
  if (approvedVersion !== version) return null;
  const actor: Actor | null = decidedById === null ? null : { kind: 'user', id: decidedById };
  const problem = await findRequesterProblem(db, { organizationId, actor }, { act: 'approval' }, options);
  return problem && { act: 'approval', actor, problem };
}
