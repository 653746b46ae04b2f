import type { InsertObject } from 'kysely';
import { json } from '../../platform/database/json.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { Person } from '../identity/person.ts';
import type { AdministrationScope, ImpersonationScope, Scope } from '../identity/scope.ts';
import type { AuditAction } from './audit-actions.ts';

export interface AuditEvent {
  action: AuditAction;
  resourceType: string;
  resourceId: string;
  reason?: string | null;
  /** What changed. Ids, names of fields, settings; never a secret or content of mail. */
  details?: Record<string, unknown>;
}

/** Who makes a change, and in which organization. */
export interface AuditedScope extends Pick<Scope, 'organizationId' | 'ip' | 'requestId' | 'actor'> {
  impersonation?: Pick<ImpersonationScope, 'id'> | undefined;
  administration?: AdministrationScope | undefined;
  /** The session of a person or staff member; undefined for keys and workflows. */
  member?: { person: Pick<Person, 'sessionId'> } | undefined;
}

/** Records a change of an organization in the caller's transaction, so that both commit or neither does. */
export async function recordAudit(
  db: Db,
  { organizationId, actor, member, impersonation, administration, ip, requestId }: AuditedScope,
  event: AuditEvent,
): Promise<void> {
  const credentialId =
    member?.person.sessionId ??
    administration?.sessionId ??
    impersonation?.id ??
    (actor.kind === 'api_key' || actor.kind === 'connection' ? actor.id : null);
  await insertEntries(db, [
    {
      org_id: organizationId,
      actor_kind: actor.kind,
      actor_id: actor.id,
      credential_id: credentialId,
      resource_type: event.resourceType,
      resource_id: event.resourceId,
      reason: storableOrNull(event.reason ?? administration?.reason),
      ip: ip ?? null,
      request_id: requestId,
      ...describe(event),
    },
  ]);
}

/**
 * For `details` of a change: the values that it replaced, under `previous`, so that the log shows old and new. Fields that
 * the change left as they were are not listed.
 */
export function replacedValues<Change extends object>(
  before: { [Field in keyof Change]?: unknown },
  change: Change,
): { previous?: Record<string, unknown> } {
  const replaced = Object.entries(change)
    .filter(([, value]) => value !== undefined)
    .map(([field, value]) => [field, before[field as keyof Change] ?? null, value ?? null] as const)
    .filter(([, old, value]) => JSON.stringify(old) !== JSON.stringify(value));
  if (replaced.length === 0) return {};
  return { previous: Object.fromEntries(replaced.map(([field, old]) => [field, old])) };
}

type Author = Pick<Person, 'userId' | 'ip' | 'requestId'> & { sessionId?: string };

/** Records a person's change of an organization that their session has not entered. For the people role. */
export async function recordOrganizationAudit(
  db: Db,
  person: Author,
  { organizationId, ...event }: Pick<AuditEvent, 'action' | 'details'> & { organizationId: string },
): Promise<void> {
  await insertEntries(db, [
    {
      org_id: organizationId,
      resource_type: 'organization',
      resource_id: organizationId,
      ...authoredBy(person),
      ...describe(event),
    },
  ]);
}

/** Records a person's change of their own account in the log of each of their organizations. For the people role. */
export async function recordPersonAudit(
  db: Db,
  person: Author,
  event: Pick<AuditEvent, 'action' | 'details'>,
): Promise<void> {
  const memberships = await db
    .selectFrom('members')
    .select('org_id')
    .where('user_id', '=', person.userId)
    .execute();
  if (memberships.length === 0) return;
  await insertEntries(
    db,
    memberships.map(({ org_id }) => ({
      org_id,
      resource_type: 'user',
      resource_id: person.userId,
      ...authoredBy(person),
      ...describe(event),
    })),
  );
}

/** Whether the organization's log contains an action on a resource. For the people role. */
export async function hasAuditEntry(
  db: Db,
  { organizationId, action, resourceId }: { organizationId: string; action: AuditAction; resourceId: string },
): Promise<boolean> {
  const entry = await db
    .selectFrom('audit_entries')
    .select('resource_id')
    .where('org_id', '=', organizationId)
    .where('resource_id', '=', resourceId)
    .where('action', '=', action)
    .limit(1)
    .executeTakeFirst();
  return entry !== undefined;
}

type Entry = Omit<InsertObject<Tables, 'audit_entries'>, 'id' | 'created_at'>;

async function insertEntries(db: Db, entries: Entry[]): Promise<void> {
  await db
    .insertInto('audit_entries')
    .values(entries.map((entry) => ({ ...entry, id: newId('auditEntry') })))
    .execute();
}

const describe = ({ action, details = {} }: Pick<AuditEvent, 'action' | 'details'>) => ({
  action,
  details: json(details),
});

const authoredBy = ({ userId, sessionId, ip, requestId }: Author) => ({
  actor_kind: 'user' as const,
  actor_id: userId,
  credential_id: sessionId ?? null,
  ip,
  request_id: requestId,
});

const storableOrNull = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : storableText(text);
