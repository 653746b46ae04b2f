import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Sql } from '../../platform/database/sql.ts';
import { notFound } from '../../platform/errors.ts';
import { setInboxStatus } from '../inboxes/inbox-status.ts';
import { setEnvironmentStatus, setOrganizationStatus } from '../organizations/set-status.ts';
import type { SuspensionTargetType } from './suspension.entity.ts';

export interface SuspensionTarget {
  type: SuspensionTargetType;
  id: string;
  organizationId: string;
}

/** A target as emails name it. */
export interface NamedTarget extends SuspensionTarget {
  /** Name of the organization or environment, address of the inbox. */
  name: string;
}

const SELECTS: Record<SuspensionTargetType, (target: SuspensionTarget) => Sql> = {
  organization: ({ id, organizationId }) =>
    sql`select name from organizations where id = ${id} and id = ${organizationId}`,
  environment: ({ id, organizationId }) =>
    sql`select name from environments where id = ${id} and org_id = ${organizationId}`,
  inbox: ({ id, organizationId }) =>
    sql`select email as name from inboxes where id = ${id} and org_id = ${organizationId} and deleted_at is null`,
};

/**
 * Locks the organization until the transaction ends, so that its suspensions change one after the other. Rows that refer to
 * it can still be inserted.
 *
 * @throws AppError `not_found`, also for a target of another organization and for a deleted inbox.
 */
export async function lockTarget(em: EntityManager, target: SuspensionTarget): Promise<NamedTarget> {
  await em.execute(sql`select from organizations where id = ${target.organizationId} for no key update`);
  const [row] = await em.execute<{ name: string }[]>(SELECTS[target.type](target));
  if (!row) throw notFound(target.type, target.id);
  return { ...target, name: row.name };
}

/** The caller has locked the target and changed its suspensions. */
export async function setTargetStatus(
  em: EntityManager,
  { type, id }: SuspensionTarget,
  status: 'active' | 'suspended',
): Promise<void> {
  if (type === 'organization') await setOrganizationStatus(em, id, status);
  else if (type === 'environment') await setEnvironmentStatus(em, id, status);
  else await setInboxStatus(em, id, status);
}
