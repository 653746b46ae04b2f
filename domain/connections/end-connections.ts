import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { ConnectionEnd } from './connection.entity.ts';

/**
 * Ends one connection, in the caller's transaction: its tokens no longer work. The sweep deletes them.
 *
 * @returns false if it had ended already.
 */
export async function endConnection(db: Db, connectionId: string, reason: ConnectionEnd): Promise<boolean> {
  const ended = await db
    .updateTable('connections')
    .set({ ended_at: sql<Date>`now()`, end_reason: reason })
    .where('id', '=', connectionId)
    .where('ended_at', 'is', null)
    .returning('id')
    .executeTakeFirst();
  return ended !== undefined;
}

/** Ends the connections of a person in an organization, in the caller's transaction. Returns their number. */
export async function endConnectionsOfUser(
  db: Db,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('connections')
    .set({ ended_at: sql<Date>`now()`, end_reason: 'membership' })
    .where('org_id', '=', organizationId)
    .where('user_id', '=', userId)
    .where('ended_at', 'is', null)
    .executeTakeFirstOrThrow(() => new Error('PostgreSQL did not answer an update'));
  return Number(numUpdatedRows);
}

/** Ends a connection because its client revoked a token, or because a token was used twice. For the people role. */
export async function endConnectionOfClient(
  db: Db,
  connectionId: string,
  { reason, ip }: { reason: 'client' | 'reuse'; ip: string | undefined },
): Promise<void> {
  if (!(await endConnection(db, connectionId, reason))) return;
  const connection = await db
    .selectFrom('connections')
    .select('org_id as organizationId')
    .where('id', '=', connectionId)
    .executeTakeFirst();
  if (!connection) return;
  await recordAudit(
    db,
    {
      organizationId: connection.organizationId,
      actor: { kind: 'connection', id: connectionId },
      requestId: newId('request'),
      ...(ip === undefined ? {} : { ip }),
    },
    {
      action: 'connection.ended',
      resourceType: 'connection',
      resourceId: connectionId,
      details: { cause: reason },
    },
  );
}
