import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Scope } from '../identity/scope.ts';

export type ActorNameService = ReturnType<typeof createActorNameService>;

/** For pages, which show people the names of those who acted instead of their ids. */
export function createActorNameService({ database }: { database: Database }) {
  return {
    /**
     * Names of people (or their address), API keys, connected clients and inboxes that acted in the organization, by
     * id, in one statement. Those that no longer exist are missing.
     */
    find: (
      { organizationId }: Pick<Scope, 'organizationId'>,
      ids: Iterable<string | null>,
    ): Promise<ReadonlyMap<string, string>> => {
      const wanted = [...new Set(ids)].filter((id) => id !== null);
      if (wanted.length === 0) return Promise.resolve(new Map());
      return database.read({ organizationId }, async ({ db }) => {
        const rows = await db
          .selectFrom('members')
          .innerJoin('users', 'users.id', 'members.user_id')
          .select(({ fn }) => ['users.id', fn.coalesce('users.name', 'users.email').as('name')])
          .where('members.org_id', '=', organizationId)
          .where('users.id', '=', anyOf(wanted))
          .unionAll(
            db
              .selectFrom('api_keys')
              .select(['id', 'name'])
              .where('org_id', '=', organizationId)
              .where('id', '=', anyOf(wanted)),
          )
          .unionAll(
            db
              .selectFrom('connections')
              .select(['id', 'client_name as name'])
              .where('org_id', '=', organizationId)
              .where('id', '=', anyOf(wanted)),
          )
          .unionAll(
            db
              .selectFrom('inboxes')
              .select(['id', 'email as name'])
              .where('org_id', '=', organizationId)
              .where('id', '=', anyOf(wanted)),
          )
          .execute();
        return new Map(rows.map(({ id, name }) => [id, name]));
      });
    },
  };
}
