import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { storableText } from '../../platform/database/storable.ts';
import { newId } from '../../platform/ids.ts';
import { type AuditEvent, recordAudit } from '../audit/record-audit.ts';
import type { StaffScope } from './staff-scope.ts';

export interface StaffAuditEvent extends AuditEvent {
  /** Organizations whose own log gets the entry as well; several for a change of a person. */
  organizationIds?: readonly string[];
  /** Why: every change by staff has a reason. */
  reason: string;
}

/** What the logs keep of a staff member. */
export type AuditedStaff = Pick<StaffScope, 'staffId' | 'ip' | 'requestId'> & {
  person: Pick<StaffScope['person'], 'sessionId'>;
};

/**
 * Records a change by staff in the caller's transaction: in the service's own log, and in the logs of the organizations that
 * it concerns.
 */
export async function recordStaffAudit(
  em: EntityManager,
  staff: AuditedStaff,
  { organizationIds = [], ...event }: StaffAuditEvent,
): Promise<void> {
  const [organizationId = null] = organizationIds.length === 1 ? organizationIds : [];
  await recordInServiceLog(em, staff, event, organizationId);
  const { staffId, person, ip, requestId } = staff;
  for (const id of organizationIds)
    await recordAudit(
      em,
      { organizationId: id, actor: { kind: 'staff', id: staffId }, member: { person }, ip, requestId },
      event,
    );
}

/** Records a change by staff in the service's log alone. The use-case that makes it records it for the organization. */
export async function recordInServiceLog(
  em: EntityManager,
  { staffId, person, ip, requestId }: AuditedStaff,
  event: Omit<StaffAuditEvent, 'organizationIds'>,
  organizationId: string | null,
): Promise<void> {
  await em.execute(sql`
    insert into staff_audit_entries (id, staff_id, session_id, action, resource_type, resource_id, organization_id, reason,
      details, ip, request_id, created_at)
    values (${newId('staffAuditEntry')}, ${staffId}, ${person.sessionId}, ${event.action}, ${event.resourceType},
      ${event.resourceId}, ${organizationId}, ${storableText(event.reason)},
      ${JSON.stringify(event.details ?? {})}::jsonb, ${ip}, ${requestId}, now())`);
}
