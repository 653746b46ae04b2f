import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { setInboxStatus } from '../inboxes/inbox-status.ts';
import { setEnvironmentStatus, setOrganizationStatus } from '../organizations/set-status.ts';
import type { SuspensionTargetType } from './suspension.entity.ts';

export interface SuspensionTarget {
  type: SuspensionTargetType;
  id: string;
  organizationId: string;
}

/** A target with its name, for emails. */
export interface NamedTarget extends SuspensionTarget {
  /** Name of the organization or environment, address of the inbox. */
  name: string;
}

/**
 * Locks the organization until the transaction ends, so that its suspensions change one at a time. Rows that refer to the
 * organization can still be inserted.
 *
 * @throws AppError `not_found`, also for a target of another organization and for a deleted inbox.
 */
export async function lockTarget(db: Db, target: SuspensionTarget): Promise<NamedTarget> {
  await db
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', target.organizationId)
    .forNoKeyUpdate()
    .execute();
  const row = await findName(db, target);
  if (!row) throw notFound(target.type, target.id);
  return { ...target, name: row.name };
}

function findName(
  db: Db,
  { type, id, organizationId }: SuspensionTarget,
): Promise<{ name: string } | undefined> {
  if (type === 'organization')
    return db
      .selectFrom('organizations')
      .select('name')
      .where('id', '=', id)
      .where('id', '=', organizationId)
      .executeTakeFirst();
  if (type === 'environment')
    return db
      .selectFrom('environments')
      .select('name')
      .where('id', '=', id)
      .where('org_id', '=', organizationId)
      .executeTakeFirst();
  return db
    .selectFrom('inboxes')
    .select('email as name')
    .where('id', '=', id)
    .where('org_id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
}

/** The caller has locked the target and changed its suspensions. */
export async function setTargetStatus(
  db: Db,
  { type, id }: SuspensionTarget,
  status: 'active' | 'suspended',
): Promise<void> {
  if (type === 'organization') await setOrganizationStatus(db, id, status);
  else if (type === 'environment') await setEnvironmentStatus(db, id, status);
  else await setInboxStatus(db, id, status);
}
