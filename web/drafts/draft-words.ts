import {
  type ApprovalSignal,
  DRAFT_SEND_STATUSES,
  type Draft,
  type DraftSendStatus,
} from '../../domain/drafts/draft.entity.ts';
import type { Actor } from '../../domain/identity/scope.ts';
import type { Tone } from '../shell/charts.ts';

export const DRAFT_STATES: Record<DraftSendStatus, { tone: Tone; text: string; plural: string }> = {
  draft: { tone: 'neutral', text: 'draft', plural: 'Not sent' },
  scheduled: { tone: 'info', text: 'scheduled', plural: 'Scheduled' },
  pending_approval: { tone: 'warn', text: 'waits for approval', plural: 'Waiting for approval' },
  rejected: { tone: 'bad', text: 'rejected', plural: 'Rejected' },
  failed: { tone: 'bad', text: 'could not be sent', plural: 'Failed' },
};
export const stateOf = ({ sendStatus }: Draft) => DRAFT_STATES[sendStatus as DraftSendStatus];
export const DRAFT_STATUS_LIST = DRAFT_SEND_STATUSES;

const SEND_ERRORS: Record<string, string> = {
  approval_rejected: 'An approver rejected it.',
  approval_expired: 'No person decided in time.',
  approval_canceled: 'The request for approval was withdrawn.',
  requester_not_allowed: 'Who asked for it may no longer send.',
};

/** Why a draft was not sent, in words: a stored reason begins with a code. */
export function describeSendError(sendError: string): { text: string; note: string | null } {
  const [, code = '', rest] = /^([a-z_]+)(?:: ([\s\S]*))?$/.exec(sendError) ?? [];
  const known = SEND_ERRORS[code];
  if (known) return { text: known, note: rest ?? null };
  return { text: rest ?? sendError, note: null };
}

export const SIGNALS: Record<ApprovalSignal, string> = {
  external_recipient: 'A recipient is outside your organization',
  first_contact: 'First message to a recipient',
  attachments: 'Has attachments',
  injection_alarm: 'A received message shows signs of prompt injection',
  changed: 'Changed while it waited',
};

/** For lists. */
export const SHORT_SIGNALS: Record<ApprovalSignal, string> = {
  external_recipient: 'outside',
  first_contact: 'first contact',
  attachments: 'attachments',
  injection_alarm: 'prompt injection',
  changed: 'changed',
};

const KINDS: Record<Actor['kind'], string> = {
  api_key: 'API key',
  connection: 'Connected program',
  user: 'Person',
  staff: 'Staff',
  system: 'Email client',
};

export interface ActorView {
  kind: string;
  /** Null if the person or key no longer exists. */
  name: string | null;
}

/** Who did something, for people. @param names by id. */
export function describeActor(
  kind: Actor['kind'] | null,
  id: string | null,
  names: ReadonlyMap<string, string>,
): ActorView | null {
  return kind && id ? { kind: KINDS[kind], name: names.get(id) ?? null } : null;
}
