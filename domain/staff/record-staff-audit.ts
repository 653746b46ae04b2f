import { json } from '../../platform/database/json.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { type AuditEvent, recordAudit } from '../audit/record-audit.ts';
import type { StaffScope } from './staff-scope.ts';

export interface StaffAuditEvent extends AuditEvent {
  /** Organizations whose own log also gets the entry; several for a change of a person. */
  organizationIds?: readonly string[];
  /** Every change by staff has a reason. */
  reason: string;
}

/** What the logs record about a staff member. */
export type AuditedStaff = Pick<StaffScope, 'staffId' | 'ip' | 'requestId'> & {
  person: Pick<StaffScope['person'], 'sessionId'>;
};

/**
 * Records a change by staff in the caller's transaction: in the service's own log, and in the logs of the affected
 * organizations.
 */
export async function recordStaffAudit(
  db: Db,
  staff: AuditedStaff,
  { organizationIds = [], ...event }: StaffAuditEvent,
): Promise<void> {
  const [organizationId = null] = organizationIds.length === 1 ? organizationIds : [];
  await recordInServiceLog(db, staff, event, organizationId);
  const { staffId, person, ip, requestId } = staff;
  for (const id of organizationIds)
    await recordAudit(
      db,
      { organizationId: id, actor: { kind: 'staff', id: staffId }, member: { person }, ip, requestId },
      event,
    );
}

/**
 * Records a change by staff only in the service's log. The use-case that makes the change records it for the organization.
 */
export async function recordInServiceLog(
  db: Db,
  { staffId, person, ip, requestId }: AuditedStaff,
  event: Omit<StaffAuditEvent, 'organizationIds'>,
  organizationId: string | null,
): Promise<void> {
  await db
    .insertInto('staff_audit_entries')
    .values({
      id: newId('staffAuditEntry'),
      staff_id: staffId,
      session_id: person.sessionId,
      action: event.action,
      resource_type: event.resourceType,
      resource_id: event.resourceId,
      organization_id: organizationId,
      reason: storableText(event.reason),
      details: json(event.details ?? {}),
      ip,
      request_id: requestId,
    })
    .execute();
}
