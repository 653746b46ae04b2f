import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { ExportRunner } from '../../domain/exports/export-runner.ts';
import { EXPORTED_HISTORY } from '../../domain/exports/exported-history.ts';
import { EXPORTED_TABLES } from '../../domain/exports/exported-tables.ts';
import { applyMetricDeltas } from '../../domain/metrics/metric-deltas.ts';
import { applyUsageDeltas } from '../../domain/usage/apply-usage-deltas.ts';
import { newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import { createTestExportRunner, queueExport, runExport, useExportApp } from '../support/exports.ts';
import { importArchive, linesOf } from '../support/import-archive.ts';
import {
  asSchemaOwner,
  createRichOrganization,
  type RichOrganization,
  SECRET,
} from '../support/rich-organization.ts';
import { readZip } from '../support/zip-reader.ts';

/** Writing an archive takes many steps and transactions, which is slow on a busy machine. */
jest.setTimeout(180_000);

const { app, download } = useExportApp();
let runner: ExportRunner;
beforeAll(() => {
  runner = createTestExportRunner(app);
});

async function exported(organization: RichOrganization): Promise<string> {
  const id = await queueExport(organization);
  await runExport(runner, id);
  return download(id);
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** Rows of a table in PostgreSQL, without the omitted columns. */
async function rowsOf(table: string, organizationId: string): Promise<Record<string, unknown>[]> {
  const { omitted = {} } = EXPORTED_TABLES.find((entry) => entry.table === table) ?? {};
  const column = table === 'organizations' ? 'id' : 'org_id';
  const { rows } = await asSchemaOwner((client) =>
    client.query(`select to_json(t)::text as row from "${table}" t where ${column} = $1 order by 1`, [
      organizationId,
    ]),
  );
  return rows.map(({ row }) => {
    const parsed = JSON.parse(row) as Record<string, unknown>;
    for (const name of [...Object.keys(omitted), 'org_id', 'storage_key', 'raw_key']) delete parsed[name];
    return parsed;
  });
}

/** Waits until the organization has no pending deltas: workers of other tests may hold some for a moment. */
async function applyPendingDeltas(organizationId: string): Promise<void> {
  await eventually(async () => {
    await applyUsageDeltas(app.worker);
    await applyMetricDeltas(app.worker);
    const { rows } = await asSchemaOwner((client) =>
      client.query(
        `select 1 from usage_deltas where org_id = $1 union all select 1 from metric_deltas where org_id = $1`,
        [organizationId],
      ),
    );
    expect(rows).toEqual([]);
  }, 60_000);
}

/** Maps exported ids to those of the importing organization, in the same order. */
function renaming(from: RichOrganization, organizationId: string) {
  const renamedId = (id: string) => `${id.slice(0, -4)}zzzz`;
  const marker = `i${from.marker.slice(1)}`;
  return (text: string) =>
    text
      .replaceAll(from.organizationId, organizationId)
      .replaceAll(from.marker, marker)
      .replace(/\b[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}\b/g, (id) => (id === organizationId ? id : renamedId(id)));
}

describe('an export', () => {
  test('can be imported into an empty organization with identical rows and file hashes', async () => {
    const organization = await createRichOrganization(app.storage, { messages: 7 });
    const originals = new Map<string, Record<string, unknown>[]>();
    const remember = async (tables: typeof EXPORTED_TABLES) => {
      for (const { table } of tables) originals.set(table, await rowsOf(table, organization.organizationId));
    };
    await remember(EXPORTED_TABLES.filter((table) => !EXPORTED_HISTORY.includes(table)));
    const path = await exported(organization);
    // Includes the deltas that were pending when it was read.
    await applyPendingDeltas(organization.organizationId);
    await remember(EXPORTED_HISTORY);
    const organizationId = newId('organization');
    const renamed = renaming(organization, organizationId);
    await importArchive(path, organizationId, app.storage, renamed);
    for (const [table, original] of originals) {
      expect({ table, some: original.length > 0 }).toEqual({ table, some: true });
      const expected = original.map((row) => JSON.parse(renamed(JSON.stringify(row))));
      const byText = (rows: unknown[]) => rows.map((row) => JSON.stringify(row)).sort();
      expect(byText(await rowsOf(table, organizationId))).toEqual(byText(expected));
    }
    const { rows: files } = await asSchemaOwner((client) =>
      client.query(
        `select raw_key as key, null as sha256 from messages where org_id = $1
         union all select storage_key, encode(sha256, 'hex') from attachments where org_id = $1`,
        [organizationId],
      ),
    );
    const imported = await Promise.all(
      files.map(async ({ key, sha256: expectedSha256 }) => {
        const sum = sha256(await app.storage.getBytes(key, 1_000_000));
        expect(expectedSha256 ?? sum).toBe(sum);
        return sum;
      }),
    );
    expect(imported.sort()).toEqual([...organization.objects.values()].map(sha256).sort());
  });

  test('contains no other organization’s data and no secrets', async () => {
    const [one, other] = [
      await createRichOrganization(app.storage),
      await createRichOrganization(app.storage),
    ];
    const { rows: ids } = await asSchemaOwner((client) =>
      client.query(
        EXPORTED_TABLES.filter(({ columns }) => columns.includes('id'))
          .map(
            ({ table }) =>
              `select id from "${table}" where ${table === 'organizations' ? 'id' : 'org_id'} = $1`,
          )
          .join(' union all '),
        [other.organizationId],
      ),
    );
    expect(ids.length).toBeGreaterThan(20);
    const files = await readZip(await exported(one));
    let found = 0;
    for (const file of files) {
      const text = `${file.name}\n${(await file.read()).toString('latin1')}`;
      for (const { id } of ids) expect(text).not.toContain(id);
      expect(text).not.toContain(other.marker);
      expect(text).not.toContain(SECRET);
      expect(text).not.toContain(Buffer.from(SECRET).toString('hex'));
      if (text.includes(one.marker)) found += 1;
    }
    expect(found).toBeGreaterThan(25);
  });

  test('lists its contents in the manifest, including files that storage has lost', async () => {
    const bytes = Buffer.alloc(3_000, 'large');
    const organization = await createRichOrganization(app.storage, {
      attachments: [
        { filename: 'lost.bin', bytes },
        { filename: 'kept.bin', bytes },
      ],
    });
    const lost = [...organization.objects.keys()].filter((key) => key.startsWith('attachments/'))[1] ?? '';
    await app.storage.delete(lost);
    await app.storage.delete(`raw/${organization.messageIds[1]}`);
    const files = new Map((await readZip(await exported(organization))).map((file) => [file.name, file]));
    const manifest = JSON.parse((await files.get('manifest.json')?.read())?.toString() ?? '');
    expect(manifest).toMatchObject({
      format: 'agent-email-export',
      version: 1,
      organization_id: organization.organizationId,
      requested_by: organization.keyId,
      files: { messages: 5, attachments: 5 },
      missing_files: 2,
    });
    for (const { name, file, rows } of manifest.tables) {
      const lines = await linesOf(files.get(file) as never);
      expect({ name, rows }).toEqual({ name, rows: lines.length });
    }
    const names = [...files.keys()];
    expect(names.filter((name) => name.startsWith('messages/'))).toHaveLength(5);
    expect(names.filter((name) => name.startsWith('attachments/'))).toHaveLength(5);
    expect(await linesOf(files.get('data/missing_files.jsonl') as never)).toEqual(
      expect.arrayContaining([
        {
          file: `messages/${organization.messageIds[1]}.eml`,
          reason: 'gone',
          size_bytes: expect.any(Number),
        },
        {
          file: expect.stringMatching(/^attachments\/att_\w+\/lost\.bin$/),
          reason: 'gone',
          size_bytes: 3_000,
        },
      ]),
    );
  });

  const DOCS = resolve(import.meta.dirname, '../../docs');
  const SAMPLE = resolve(DOCS, 'export/read_export.py');
  // CI reports skipped tests.
  const testIfPython = spawnSync('python3', ['--version']).status === 0 ? test : test.skip;

  testIfPython('is read by the script of docs/export.md', async () => {
    expect(readFileSync(join(DOCS, 'export.md'), 'utf8')).toContain(readFileSync(SAMPLE, 'utf8'));
    const organization = await createRichOrganization(app.storage, { messages: 2 });
    const lost = organization.messageIds[3];
    await app.storage.delete(`raw/${lost}`);
    const { stdout, stderr } = spawnSync('python3', [SAMPLE, await exported(organization)], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    const lines = stdout.trim().split('\n').sort();
    const read = organization.messageIds.filter((id) => id !== lost);
    expect(lines).toEqual(
      read.map((id, number) => `${id} ${number % 2 === 0 ? 'received' : 'sent'} ${number % 2}`).sort(),
    );
  });

  testIfPython('is read by that script even if a message has 1,000 nested parts', () => {
    const folder = mkdtempSync(join(tmpdir(), 'deep-mail-'));
    const archive = join(folder, 'export.zip');
    const levels = Array.from({ length: 1_000 }, (_, level) => level);
    const open = levels.map(
      (level) => `Content-Type: multipart/mixed; boundary="b${level}"\r\n\r\n--b${level}\r\n`,
    );
    const deep = `Subject: deep\r\nMIME-Version: 1.0\r\n${open.join('')}Content-Type: text/plain\r\n\r\nhi\r\n`;
    writeFileSync(join(folder, 'deep.eml'), deep);
    const write = `import json, sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as archive:
    archive.writestr('manifest.json', '{}')
    archive.writestr('data/missing_files.jsonl', '')
    archive.writestr('data/messages.jsonl', json.dumps({'id': 'msg_1', 'status': 'received', 'file': 'deep.eml'}))
    archive.write(sys.argv[2], 'deep.eml')`;
    expect(spawnSync('python3', ['-c', write, archive, join(folder, 'deep.eml')]).status).toBe(0);
    const { stdout, stderr } = spawnSync('python3', [SAMPLE, archive], { encoding: 'utf8' });
    rmSync(folder, { recursive: true });
    expect({ stdout, stderr }).toEqual({ stdout: 'msg_1 received deep\n', stderr: '' });
  });
});
