import { LRUCache } from 'lru-cache';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { hasAuditEntry, recordAudit } from '../audit/record-audit.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { BreakGlassEntry } from '../sessions/session-authenticator.ts';

const ACTION = 'sso.break_glass_used';
const MAX_REMEMBERED = 10_000;

export function createBreakGlass({
  database,
  notifications,
}: {
  database: Database;
  notifications: NotificationService;
}) {
  /** Sessions that are recorded already, to save the query. */
  const recorded = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  return {
    /**
     * Records that a session enters an organization without its single sign-on: once per session, with an email to all
     * owners.
     */
    async record(entry: BreakGlassEntry): Promise<void> {
      const key = `${entry.sessionId} ${entry.organizationId}`;
      if (recorded.has(key)) return;
      await database.peopleTransaction((transaction) => recordOnce(transaction, notifications, entry));
      recorded.set(key, true);
    },
  };
}

async function recordOnce(
  transaction: Transaction,
  notifications: NotificationService,
  { sessionId, userId, organizationId, ip, requestId }: BreakGlassEntry,
): Promise<void> {
  const { db } = transaction;
  await lockKey(db, 'sso-break-glass', sessionId, organizationId);
  if (await hasAuditEntry(db, { organizationId, action: ACTION, resourceId: sessionId })) return;
  await recordAudit(
    db,
    { organizationId, actor: { kind: 'user', id: userId }, ip, requestId },
    { action: ACTION, resourceType: 'session', resourceId: sessionId },
  );
  await notifications.notifyOwners(transaction, {
    organizationId,
    template: 'sso-break-glass',
    params: { organizationId, userId, at: formatUtc(new Date()), ip },
    dedupeKey: `sso-break-glass/${sessionId}/${organizationId}`,
  });
}
