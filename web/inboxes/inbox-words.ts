import type { InboxRow } from '../../domain/inboxes/find-inbox.ts';
import type { SendingPauser } from '../../domain/inboxes/sending-pause.ts';

/** What people call the state of an inbox; `ui.status` knows each. */
export function inboxState({ status, sendPaused, purgeRequestedAt, deletedAt }: InboxRow): string {
  if (purgeRequestedAt) return 'purging';
  if (deletedAt) return 'deleted';
  if (status === 'suspended') return 'suspended';
  return sendPaused ? 'paused' : 'active';
}

/** Who paused sending, for people. */
export const PAUSERS: Record<SendingPauser, string> = {
  service: 'by the service, because of delivery problems',
  person: 'by a person',
  staff: 'by staff of the service',
  credential: 'by an API key or a connected program',
};
