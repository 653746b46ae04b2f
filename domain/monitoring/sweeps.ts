import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';

/** Records that recurring work has succeeded. */
export async function recordSweep({ db }: Pick<Database, 'db'>, name: string): Promise<void> {
  await db
    .insertInto('sweeps')
    .values({ name, finished_at: sql`now()` })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((eb) => ({ finished_at: eb.ref('excluded.finished_at') })),
    )
    .execute();
}

/** When each recurring work last succeeded. */
export function readSweeps({ db }: Pick<Database, 'db'>): Promise<{ name: string; finishedAt: Date }[]> {
  return db.selectFrom('sweeps').select(['name', 'finished_at as finishedAt']).execute();
}
