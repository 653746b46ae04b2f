import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { joinSql } from '../../platform/database/sql.ts';
import { storableText } from '../../platform/database/storable.ts';
import { newId } from '../../platform/ids.ts';
import type { Person } from '../identity/person.ts';
import type { AdministrationScope, ImpersonationScope, Scope } from '../identity/scope.ts';

export interface AuditEvent {
  /** `<resource>.<past participle>`, for example `api_key.created`. */
  action: string;
  resourceType: string;
  resourceId: string;
  reason?: string | null;
  /** What changed. Ids, names of fields, settings; never a secret or content of mail. */
  details?: Record<string, unknown>;
}

/** Who makes a change, and where. */
export interface AuditedScope extends Pick<Scope, 'organizationId' | 'ip' | 'requestId' | 'actor'> {
  impersonation?: Pick<ImpersonationScope, 'id'> | undefined;
  administration?: AdministrationScope | undefined;
  /** The session of a person or staff member; undefined for keys and workflows. */
  member?: { person: Pick<Person, 'sessionId'> } | undefined;
}

/** Records a change of an organization in the caller's transaction, so that both commit or neither does. */
export async function recordAudit(
  em: EntityManager,
  { organizationId, actor, member, impersonation, administration, ip, requestId }: AuditedScope,
  event: AuditEvent,
): Promise<void> {
  const credentialId =
    member?.person.sessionId ??
    administration?.sessionId ??
    impersonation?.id ??
    (actor.kind === 'api_key' ? actor.id : null);
  await em.execute(sql`
    insert into audit_entries (id, org_id, action, actor_kind, actor_id, credential_id, resource_type, resource_id, reason,
      details, ip, request_id, created_at)
    values (${newId('auditEntry')}, ${organizationId}, ${event.action}, ${actor.kind}, ${actor.id}, ${credentialId},
      ${event.resourceType}, ${event.resourceId}, ${storableOrNull(event.reason ?? administration?.reason)},
      ${JSON.stringify(event.details ?? {})}::jsonb, ${ip ?? null}, ${requestId}, now())`);
}

/** Records a person's change of an organization in which their session does not act. For the people role. */
export async function recordOrganizationAudit(
  em: EntityManager,
  person: Pick<Person, 'userId' | 'ip' | 'requestId'> & { sessionId?: string },
  { organizationId, ...event }: Pick<AuditEvent, 'action' | 'details'> & { organizationId: string },
): Promise<void> {
  await em.execute(sql`
    insert into audit_entries (id, org_id, action, actor_kind, actor_id, credential_id, resource_type, resource_id, reason,
      details, ip, request_id, created_at)
    values (${newId('auditEntry')}, ${organizationId}, ${event.action}, 'user', ${person.userId},
      ${person.sessionId ?? null}, 'organization', ${organizationId}, null,
      ${JSON.stringify(event.details ?? {})}::jsonb, ${person.ip}, ${person.requestId}, now())`);
}

/** Records a person's change of their own account with each organization they belong to. For the people role. */
export async function recordPersonAudit(
  em: EntityManager,
  person: Pick<Person, 'userId' | 'ip' | 'requestId'> & { sessionId?: string },
  event: Pick<AuditEvent, 'action' | 'details'>,
): Promise<void> {
  const memberships = await em.execute<{ organizationId: string }[]>(sql`
    select org_id as "organizationId" from members where user_id = ${person.userId}`);
  if (memberships.length === 0) return;
  const details = JSON.stringify(event.details ?? {});
  const rows = memberships.map(
    ({
      organizationId,
    }) => sql`(${newId('auditEntry')}, ${organizationId}, ${event.action}, 'user', ${person.userId},
      ${person.sessionId ?? null}, 'user', ${person.userId}, null, ${details}::jsonb, ${person.ip},
      ${person.requestId}, now())`,
  );
  await em.execute(sql`
    insert into audit_entries (id, org_id, action, actor_kind, actor_id, credential_id, resource_type, resource_id, reason,
      details, ip, request_id, created_at)
    values ${joinSql(rows, ', ')}`);
}

const storableOrNull = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : storableText(text);

/** Whether the organization's log has an action on a resource. For the people role. */
export async function hasAuditEntry(
  em: EntityManager,
  { organizationId, action, resourceId }: { organizationId: string; action: string; resourceId: string },
): Promise<boolean> {
  const rows = await em.execute<object[]>(sql`
    select from audit_entries
    where org_id = ${organizationId} and resource_id = ${resourceId} and action = ${action} limit 1`);
  return rows.length > 0;
}
