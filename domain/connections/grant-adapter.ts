import { type Expression, type SqlBool, sql } from 'kysely';
import type { Adapter } from 'oidc-provider';
import type { Database } from '../../platform/database/database.ts';
import { resourcesOf } from './command-line-client.ts';

/**
 * Grants of the authorization server are connections, which the consent page makes. A grant is valid while its connection
 * is, and while its person is an active member.
 *
 * @param end called when the client revokes a token, or because a code or token was used twice.
 */
export function createGrantAdapter({
  database,
  issuer,
  end,
}: {
  database: Pick<Database, 'peopleTransaction'>;
  issuer: string;
  end(connectionId: string): Promise<void>;
}): Pick<Adapter, 'find' | 'destroy'> {
  return {
    async find(id) {
      const row = await database.peopleTransaction(({ db }) =>
        db
          .selectFrom('connections')
          .innerJoin('organizations', 'organizations.id', 'connections.org_id')
          .innerJoin('users', 'users.id', 'connections.user_id')
          .innerJoin('members', (join) =>
            join
              .onRef('members.org_id', '=', 'connections.org_id')
              .onRef('members.user_id', '=', 'connections.user_id'),
          )
          .select([
            'connections.user_id as accountId',
            'connections.client_id as clientId',
            'connections.permissions',
            sql<number>`floor(extract(epoch from connections.expires_at))::int`.as('exp'),
          ])
          .where('connections.id', '=', id)
          .where('connections.ended_at', 'is', null)
          .where('connections.expires_at', '>', sql<Date>`now()`)
          .where(isOpen())
          .executeTakeFirst(),
      );
      if (!row) return undefined;
      const { permissions, ...grant } = row;
      const scope = permissions.join(' ');
      const resources = resourcesOf(issuer, grant.clientId).map((resource) => [resource, scope]);
      return { ...grant, jti: id, kind: 'Grant', resources: Object.fromEntries(resources) };
    },
    destroy: end,
  };
}

const isOpen = (): Expression<SqlBool> =>
  sql<SqlBool>`users.status = 'active' and users.deleted_at is null and organizations.deleted_at is null`;
