import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { fileNameOf } from '../../domain/exports/exported-table.ts';
import { EXPORTED_TABLES } from '../../domain/exports/exported-tables.ts';
import type { Storage } from '../../platform/storage.ts';
import { asSchemaOwner } from './rich-organization.ts';
import { readZip, type ZipFile } from './zip-reader.ts';

type Row = Record<string, unknown>;

/**
 * Imports an archive into an empty organization, using only the description in docs/export.md.
 *
 * @param renamed replaces ids and names of the archive: both organizations are in one database.
 */
export async function importArchive(
  path: string,
  organizationId: string,
  storage: Pick<Storage, 'putBytes'>,
  renamed: (text: string) => string,
): Promise<void> {
  const files = new Map((await readZip(path)).map((file) => [file.name, file]));
  const put = async (name: unknown) => {
    const file = typeof name === 'string' ? files.get(name) : undefined;
    if (!file) return null;
    const key = `imported/${organizationId}/${file.name}`;
    await storage.putBytes(key, await file.read(), 'application/octet-stream');
    return key;
  };
  await asSchemaOwner(async (client) => {
    await client.query('begin');
    for (const exported of EXPORTED_TABLES) {
      const { table } = exported;
      const file = files.get(`data/${fileNameOf(exported)}.jsonl`);
      if (!file) throw new Error(`The archive has no ${fileNameOf(exported)}`);
      for (const row of await linesOf(file)) {
        // Paths refer to the archive, so they are not renamed.
        const key = 'file' in row ? await put(row.file) : null;
        const own = JSON.parse(renamed(JSON.stringify(row))) as Row;
        if (table === 'members') await insert(client, 'users', toUser(own));
        await insert(client, table, toColumns(table, own, organizationId, key));
      }
    }
    // The import must not count as usage, and the outcomes are already in the imported metrics.
    for (const waiting of ['usage_deltas', 'metric_deltas'])
      await client.query(`delete from ${waiting} where org_id = $1`, [organizationId]);
    await client.query('commit');
  });
}

export async function linesOf(file: ZipFile): Promise<Row[]> {
  const text = (await file.read()).toString();
  if (text !== '' && !text.endsWith('\n')) throw new Error(`${file.name} does not end with a line`);
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Row);
}

function toUser({ user_id, email, name, created_at }: Row): Row {
  return { id: user_id, email, name, created_at, updated_at: created_at };
}

function toColumns(table: string, row: Row, organizationId: string, key: string | null): Row {
  const { file: _file, ...given } = row;
  const own: Row = { ...given, ...(table === 'organizations' ? {} : { org_id: organizationId }) };
  switch (table) {
    case 'organizations':
      return { ...own, id: organizationId };
    case 'members':
      return { org_id: organizationId, user_id: row.user_id, role: row.role, created_at: row.created_at };
    case 'threads': {
      const { merged_thread_ids: _merged, ...rest } = own;
      return rest;
    }
    case 'messages': {
      const { from_address, references, ...rest } = own;
      const from = from_address as { email: string; name?: string };
      return {
        ...rest,
        from_email: from.email,
        from_name: from.name,
        reference_ids: references,
        raw_key: key,
      };
    }
    case 'attachments':
      return { ...own, sha256: `\\x${row.sha256}`, storage_key: key };
    case 'invitations':
    case 'api_keys':
      return { ...own, token_hash: createSecret() };
    case 'dkim_keys':
      return { ...own, private_key: createSecret() };
    case 'webhook_endpoints': {
      const { failures_in_row, ...rest } = own;
      return { ...rest, consecutive_failures: failures_in_row, secret: createSecret() };
    }
    case 'domains':
      return { ...own, generation_started_at: row.created_at };
    case 'notifications':
      return { ...own, dedupe_key: String(row.id) };
    case 'usage_events': {
      const { type, created_at, ...rest } = own;
      return { ...rest, kind: type, at: created_at };
    }
    case 'metric_hours': {
      const { inbox_id, domain, ...rest } = own;
      return { ...rest, subject: inbox_id ?? domain ?? '' };
    }
    default:
      return own;
  }
}

/** A new secret, since archives contain none. */
const createSecret = () => `\\x${randomBytes(32).toString('hex')}`;

async function insert(client: pg.Client, table: string, row: Row): Promise<void> {
  const columns = Object.keys(row)
    .map((name) => `"${name}"`)
    .join();
  await client.query(
    `insert into "${table}" (${columns}) select ${columns} from json_populate_record(null::"${table}", $1)`,
    [JSON.stringify(row)],
  );
}
