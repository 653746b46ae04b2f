import { AppError } from '../../platform/errors.ts';
import type { Actor, Scope } from '../identity/scope.ts';
import type { Inbox, PauserKind } from './inbox.entity.ts';

export const SENDING_PAUSERS = ['service', 'person', 'staff', 'credential'] as const;
export type SendingPauser = (typeof SENDING_PAUSERS)[number];

type PauseOf = Pick<Inbox, 'sendPaused' | 'sendPausedReason' | 'sendPausedByKind'>;

/** Whether a member or staff acts, and not a credential of an agent. Null, the service, is no person. */
export const isPerson = (kind: Actor['kind'] | null): boolean => kind === 'user' || kind === 'staff';

/**
 * Whether a new pause changes anything. A paused inbox keeps the pause that it has, except that a person's pause replaces each
 * other one: from then on a person must resume it.
 */
export function takesEffect(inbox: PauseOf, { actor }: Pick<Scope, 'actor'>, reason: string): boolean {
  if (!inbox.sendPaused) return true;
  if (!isPerson(actor.kind)) return false;
  return !isPerson(inbox.sendPausedByKind) || inbox.sendPausedReason !== reason;
}

/** The actor of a pause, as the inbox stores it. Workflows pause as the service. */
export function actorOfPause({
  kind,
  id,
}: Actor): { kind: PauserKind; id: string } | { kind: null; id: null } {
  return kind === 'system' ? { kind: null, id: null } : { kind, id };
}

/** Who paused sending; null if it is not paused. */
export function pauserOf({ sendPaused, sendPausedByKind }: PauseOf): SendingPauser | null {
  if (!sendPaused) return null;
  if (sendPausedByKind === null) return 'service';
  if (sendPausedByKind === 'user') return 'person';
  return sendPausedByKind === 'staff' ? 'staff' : 'credential';
}

/** @throws AppError `permission_denied` for a credential if a person paused the inbox. */
export function requireMayResume(inbox: PauseOf, { actor }: Pick<Scope, 'actor'>): void {
  if (!isPerson(inbox.sendPausedByKind) || isPerson(actor.kind)) return;
  throw new AppError('permission_denied', {
    detail: 'A person paused sending from this inbox, so only a person resumes it.',
    fix: 'Ask an owner or admin of the organization to resume it. send_paused_reason of the inbox says why it is paused.',
    extensions: { permission: 'inboxes:manage' },
  });
}
