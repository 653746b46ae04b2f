import { isSafeName } from '../identity/safe-name.ts';
import type { SuspensionChange, SuspensionServiceOptions } from '../suspensions/suspension.service.ts';
import { formatUtc } from './format-utc.ts';
import type { NotificationService } from './notification.service.ts';

/**
 * Emails the owners about every suspension, because mail that stops without notice would look like a fault. A
 * reinstatement is announced only if no other suspension of the target is open.
 */
export function createNotifySuspension(
  notifications: Pick<NotificationService, 'notifyOwners'>,
): SuspensionServiceOptions['onChange'] {
  return async (transaction, change) => {
    if (change.kind === 'reinstated' && change.status === 'suspended') return;
    await notifications.notifyOwners(transaction, {
      organizationId: change.target.organizationId,
      template: change.kind,
      params: toParams(change),
      dedupeKey: `${change.kind}/${change.suspension.id}`,
    });
  };
}

function toParams({ target, suspension }: SuspensionChange) {
  const { id, type, name, organizationId } = target;
  return {
    organizationId,
    targetType: type,
    targetId: id,
    // A name in a subject must not contain a link or a text that could mislead.
    targetName: type === 'inbox' || isSafeName(name) ? name : id,
    reason: suspension.reason,
    at: formatUtc(suspension.changedAt),
  };
}
