import type { ClientBase } from 'pg';
import type { RestoredStorage } from './restore.entity.ts';

/**
 * Records the cluster of the database. If it was restored into another cluster, marks it as restored: workers then wait for
 * `npm run restore:reconcile`. Called by the migration command, in its session.
 *
 * @returns whether it marked the database.
 */
export async function recordCluster(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ known: string | null; current: string }>(
    `select (select system_identifier from installation) as known, system_identifier::text as current
     from pg_control_system()`,
  );
  const { known = null, current } = rows[0] ?? {};
  if (known === current) return false;
  const isCopy = known !== null;
  await client.query('begin');
  if (isCopy) await client.query(MARK_RESTORED, [null]);
  await client.query(
    `insert into installation (id, system_identifier) values ('this', $1)
     on conflict (id) do update set system_identifier = excluded.system_identifier`,
    [current],
  );
  await client.query('commit');
  return isCopy;
}

const MARK_RESTORED = `insert into restores (restored_to, marked_at)
  select $1::timestamptz, now() where not exists (select from restores where reconciled_at is null)`;

/** Marks the database as restored from a backup of that time, unless it is marked already. */
export async function markRestored(client: ClientBase, restoredTo: Date): Promise<void> {
  await client.query(MARK_RESTORED, [restoredTo]);
}

/** Records what the restore does to the bucket. The database is marked. */
export async function recordRestoredStorage(client: ClientBase, storage: RestoredStorage): Promise<void> {
  await client.query('update restores set storage = $1 where reconciled_at is null', [storage]);
}

/** The objects are complete: says whether the bucket had lacked any. */
export async function finishRestoredStorage(client: ClientBase): Promise<void> {
  await client.query(
    `update restores set storage = case storage when 'comparing' then 'complete' else 'restored' end
     where reconciled_at is null`,
  );
}
