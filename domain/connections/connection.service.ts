import { sql } from 'kysely';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requirePermission, type Scope } from '../identity/scope.ts';
import { ConnectionEntity } from './connection.entity.ts';
import { endConnection } from './end-connections.ts';

export type ConnectionRow = RowOf<typeof ConnectionEntity>;
export type ConnectionService = ReturnType<typeof createConnectionService>;

export function createConnectionService({ database }: { database: Database }) {
  return {
    /**
     * Lists the connections that work: one's own, or with `members:manage` all of the organization that lie within the
     * caller's binding.
     *
     * @throws AppError `permission_denied` for a key without `members:manage`.
     */
    list: (scope: Scope, page: PageRequest): Promise<Page<ConnectionRow>> =>
      database.read(scope, async ({ db }) => {
        if (!scope.member) requirePermission(scope, 'members:manage');
        return findPage(selectVisible(db, scope), 'connections.id', page);
      }),

    /**
     * Ends a connection at once, for its person or with `members:manage`.
     *
     * @throws AppError `not_found`, also for a connection that has ended, and for a key without `members:manage`.
     */
    end: (scope: Scope, connectionId: string): Promise<void> =>
      database.transaction(scope, async ({ db }) => {
        const visible = await selectVisible(db, scope).where('id', '=', connectionId).executeTakeFirst();
        if (!visible || !(await endConnection(db, connectionId, 'person')))
          throw notFound('connection', connectionId);
        await recordAudit(db, scope, {
          action: 'connection.ended',
          resourceType: 'connection',
          resourceId: connectionId,
          details: { cause: 'person', client_name: visible.clientName, user_id: visible.userId },
        });
      }),
  };
}

function selectVisible(db: Db, scope: Scope) {
  const { organizationId, environmentId, environmentBound, inboxId, member } = scope;
  const seesAll = scope.permissions.has('members:manage');
  return db
    .selectFrom('connections')
    .select(columnsOf(ConnectionEntity))
    .where('org_id', '=', organizationId)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .$if(environmentBound, (query) => query.where('env_id', '=', environmentId))
    .$if(inboxId !== undefined, (query) => query.where('inbox_id', '=', inboxId ?? ''))
    .$if(!seesAll, (query) => query.where('user_id', '=', member?.person.userId ?? ''));
}
