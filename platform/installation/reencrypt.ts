import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { type SecretBox, UnlistedKeyError } from '../crypto.ts';
import type { Database } from '../database/database.ts';
import type { SealedColumn, SealedRowKey } from '../sealed-column.ts';

export interface ColumnResult {
  table: string;
  column: string;
  /** Values that now have the first key. */
  reencrypted: number;
  /** Values that no listed key opens, by the reason. */
  unreadable: Record<string, number>;
  /** Values that still have another key, unreadable ones included. */
  remaining: number;
}

const BATCH_SIZE = 500;

/**
 * Encrypts the values of a column that have another than the first key again. Commits in batches: an interrupted run is
 * simply repeated. A value that a process changes meanwhile is left as that process wrote it.
 *
 * @param database with the login of the schema's owner: no other role may write every table.
 */
export async function reencryptColumn(
  database: Database,
  secretBox: SecretBox,
  column: SealedColumn,
): Promise<ColumnResult> {
  const result: ColumnResult = {
    table: column.table,
    column: column.column,
    reencrypted: 0,
    unreadable: {},
    remaining: 0,
  };
  for (let after: SealedRowKey | undefined; ; ) {
    const rows = await takeBatch(database, secretBox, column, after);
    for (const row of rows) {
      const outcome = reseal(secretBox, column, row);
      if (typeof outcome === 'string') result.unreadable[outcome] = (result.unreadable[outcome] ?? 0) + 1;
      else result.reencrypted += await replace(database, column, row, outcome);
    }
    after = rows.at(-1);
    if (rows.length < BATCH_SIZE) break;
  }
  result.remaining = await countRemaining(database, secretBox, column);
  return result;
}

type SealedRow = SealedRowKey & { readonly sealed_value: Buffer };

/** Values whose first bytes are not those of the first key. */
const needsReencryption = (secretBox: SecretBox, { column }: SealedColumn): RawBuilder<SqlBool> =>
  sql`${sql.ref(column)} is not null
    and substring(${sql.ref(column)} from 1 for ${secretBox.currentPrefix.length}::int) <> ${secretBox.currentPrefix}`;

async function takeBatch(
  { db }: Database,
  secretBox: SecretBox,
  column: SealedColumn,
  after: SealedRowKey | undefined,
): Promise<SealedRow[]> {
  const key = sql.join(column.key.map((name) => sql.ref(name)));
  const isNext = after
    ? sql<SqlBool>`(${key}) > (${sql.join(column.key.map((name) => after[name]))})`
    : sql<SqlBool>`true`;
  const { rows } = await sql<SealedRow>`
    select ${key}, ${sql.ref(column.column)} as sealed_value from ${sql.table(column.table)}
    where ${needsReencryption(secretBox, column)} and ${isNext} order by ${key} limit ${BATCH_SIZE}`.execute(
    db,
  );
  return rows;
}

/** Returns the new value, or why the old one cannot be read. */
function reseal(secretBox: SecretBox, column: SealedColumn, row: SealedRow): Buffer | string {
  const context = column.context(row);
  try {
    return secretBox.seal(secretBox.open(row.sealed_value, context), context);
  } catch (error) {
    return error instanceof UnlistedKeyError
      ? `encrypted with the key ${error.keyId}, which ENCRYPTION_KEY does not list`
      : 'damaged, or encrypted with a key that ENCRYPTION_KEY does not list';
  }
}

async function replace(
  { db }: Database,
  column: SealedColumn,
  row: SealedRow,
  sealed: Buffer,
): Promise<number> {
  const isRow = sql.join(
    column.key.map((name) => sql`${sql.ref(name)} = ${row[name]}`),
    sql` and `,
  );
  const { numAffectedRows = 0n } = await sql`
    update ${sql.table(column.table)} set ${sql.ref(column.column)} = ${sealed}
    where ${isRow} and ${sql.ref(column.column)} = ${row.sealed_value}`.execute(db);
  return Number(numAffectedRows);
}

async function countRemaining({ db }: Database, secretBox: SecretBox, column: SealedColumn): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ${sql.table(column.table)} where ${needsReencryption(secretBox, column)}`.execute(
    db,
  );
  return rows[0]?.count ?? 0;
}
