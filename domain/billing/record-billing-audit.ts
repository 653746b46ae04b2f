import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { type AuditEvent, recordAudit } from '../audit/record-audit.ts';

/** Audits an automatic change by billing, in the transaction of the change. The subscription is the actor. */
export async function recordBillingAudit(
  { db, requestId }: Transaction,
  {
    organizationId,
    subscriptionId,
    ...event
  }: AuditEvent & { organizationId: string; subscriptionId: string; reason: string },
): Promise<void> {
  await recordAudit(
    db,
    {
      organizationId,
      actor: { kind: 'system', id: subscriptionId },
      requestId: requestId ?? newId('request'),
    },
    { ...event, details: { ...event.details, subscription_id: subscriptionId } },
  );
}
