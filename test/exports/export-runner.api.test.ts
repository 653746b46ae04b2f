import { describe, expect, jest, test } from '@jest/globals';
import type { ExportRunnerOptions } from '../../domain/exports/export-runner.ts';
import { overdueExports } from '../../domain/exports/export-start.ts';
import { sweepObjects } from '../../domain/stored-objects/sweep-objects.ts';
import { newId } from '../../platform/ids.ts';
import { StorageError } from '../../platform/storage-error.ts';
import {
  createCrashingRunner,
  createTestExportRunner,
  queueExport,
  readExportRow,
  runExport,
  useExportApp,
} from '../support/exports.ts';
import { linesOf } from '../support/import-archive.ts';
import { asSchemaOwner, createRichOrganization } from '../support/rich-organization.ts';
import { readZip } from '../support/zip-reader.ts';

/** Writing an archive takes many steps and transactions, which is slow on a busy machine. */
jest.setTimeout(180_000);

const { app, download } = useExportApp();

type Uploads = ExportRunnerOptions['storage']['multipartUploads'];

/** The real storage with some calls replaced. */
function storageWith(changed: (uploads: Uploads) => Partial<Uploads>): ExportRunnerOptions['storage'] {
  const { storage } = app;
  return {
    ...storage,
    multipartUploads: { ...storage.multipartUploads, ...changed(storage.multipartUploads) },
  };
}

/** Reads the whole archive strictly and returns its files by name. */
async function filesOf(exportId: string) {
  const files = await readZip(await download(exportId));
  for (const file of files) await file.read();
  return new Map(files.map((file) => [file.name, file]));
}

async function arrange(options: Parameters<typeof createRichOrganization>[1] = {}) {
  const organization = await createRichOrganization(app.storage, options);
  return { organization, exportId: await queueExport(organization) };
}

const MESSAGE_COLUMNS = `(id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc, reply_to,
  subject, headers, created_at, updated_at)`;

/** A thread that spans two pages, in the last environment. */
async function addLongThread(organizationId: string): Promise<string> {
  const threadId = newId('thread');
  await asSchemaOwner(async (client) => {
    await client.query(
      `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, last_message_at, created_at, updated_at)
       select $1, org_id, env_id, id, '', '', now(), now(), now() from inboxes where org_id = $2 order by env_id desc limit 1`,
      [threadId, organizationId],
    );
    await client.query(
      `insert into messages ${MESSAGE_COLUMNS} select message_id, org_id, env_id, inbox_id, id, 'inbound', 'received',
         'a@people.example', '[]', '[]', '[]', '[]', '', '{}', now(), now()
       from threads, unnest($2::text[]) message_id where id = $1`,
      [threadId, Array.from({ length: 700 }, () => newId('message'))],
    );
  });
  return threadId;
}

/** The real storage, with a change of the data between the estimate and the first row that is read. */
const storageWithStart = (change: () => Promise<unknown>): ExportRunnerOptions['storage'] =>
  storageWith((uploads) => ({
    async create(...call) {
      await change();
      return uploads.create(...call);
    },
  }));

async function expectNoUpload(exportId: string, uploadId: unknown): Promise<void> {
  expect(uploadId).toEqual(expect.any(String));
  const part = [`exports/${exportId}.zip`, String(uploadId), 1, Buffer.from('x')] as const;
  await expect(app.storage.multipartUploads.uploadPart(...part)).rejects.toMatchObject({
    failure: 'missing',
  });
}

async function hoursUntilDeleted(exportId: string): Promise<number> {
  const { rows } = await asSchemaOwner((client) =>
    client.query(
      `select extract(epoch from due_at - now()) / 3600 as hours from unclaimed_objects where storage_key = $1`,
      [`exports/${exportId}.zip`],
    ),
  );
  return Number(rows[0].hours);
}

const unavailable = () => new StorageError('unavailable', 'Storage does not answer.');

describe('writing an export', () => {
  test('begins again after its worker has died, and leaves nothing of what that one uploaded', async () => {
    const { exportId } = await arrange({ messages: 6 });
    await expect(createCrashingRunner(app, { afterParts: 4 }).write(exportId)).rejects.toThrow('gone');
    const { upload_id: uploadId, ...crashed } = await readExportRow(exportId);
    expect(crashed).toMatchObject({ status: 'running' });
    expect(Number(crashed.size_bytes)).toBeGreaterThan(4 * 2_000);
    await runExport(createTestExportRunner(app), exportId);
    await expectNoUpload(exportId, uploadId);
    expect(await readExportRow(exportId)).toMatchObject({ status: 'ready', upload_id: null });
    expect((await filesOf(exportId)).has('manifest.json')).toBe(true);
  });

  test('continues after a storage outage without uploading parts again', async () => {
    const { exportId } = await arrange({ messages: 12 });
    const uploadedParts: number[] = [];
    let calls = 0;
    const fail = () => {
      calls += 1;
      if (calls % 3 !== 0) throw unavailable();
    };
    const storage = storageWith((uploads) => ({
      async uploadPart(key, uploadId, number, bytes) {
        fail();
        uploadedParts.push(number);
        return uploads.uploadPart(key, uploadId, number, bytes);
      },
    }));
    const getRange: typeof storage.getRange = async (...call) => {
      fail();
      return app.storage.getRange(...call);
    };
    await runExport(createTestExportRunner(app, { storage: { ...storage, getRange } }), exportId);
    expect(uploadedParts.length).toBeGreaterThan(4);
    expect(uploadedParts).toEqual(uploadedParts.map((_, index) => index + 1));
    expect((await filesOf(exportId)).has('manifest.json')).toBe(true);
  });

  test('becomes ready although the answer to the completion of its upload is lost', async () => {
    const { exportId } = await arrange();
    let completed = 0;
    const storage = storageWith((uploads) => ({
      async complete(...call) {
        await uploads.complete(...call);
        completed += 1;
        throw unavailable();
      },
    }));
    await runExport(createTestExportRunner(app, { storage }), exportId);
    expect(completed).toBe(1);
    expect((await filesOf(exportId)).has('manifest.json')).toBe(true);
  });

  test('becomes ready after a worker crash between the upload’s completion and the commit', async () => {
    const { exportId } = await arrange();
    const storage = storageWith((uploads) => ({
      async complete(...call) {
        await uploads.complete(...call);
        throw new Error('The worker is gone');
      },
    }));
    await expect(createTestExportRunner(app, { storage }).write(exportId)).rejects.toThrow('gone');
    expect(await readExportRow(exportId)).toMatchObject({ status: 'running' });
    await runExport(createTestExportRunner(app), exportId);
    expect((await filesOf(exportId)).has('manifest.json')).toBe(true);
  });

  test.each(['missing', 'mismatched'] as const)(
    'begins again if its parts are %s at the end',
    async (failure) => {
      const { exportId } = await arrange();
      let uploadsStarted = 0;
      let refused = false;
      const storage = storageWith((uploads) => ({
        create(...call) {
          uploadsStarted += 1;
          return uploads.create(...call);
        },
        async complete(...call) {
          if (refused) return uploads.complete(...call);
          refused = true;
          throw new StorageError(failure, 'These are not the parts.');
        },
      }));
      const runner = createTestExportRunner(app, { storage });
      await expect(runExport(runner, exportId)).rejects.toMatchObject({ failure });
      expect(await readExportRow(exportId)).toMatchObject({ status: 'running' });
      await runExport(runner, exportId);
      expect(uploadsStarted).toBe(2);
      expect((await filesOf(exportId)).has('manifest.json')).toBe(true);
    },
  );

  test('produces one archive with two concurrent workers; the stale one overwrites nothing', async () => {
    const { exportId } = await arrange({ messages: 6 });
    const newer = createTestExportRunner(app);
    let hasTakenOver = false;
    const stale = createTestExportRunner(app, {
      storage: {
        ...app.storage,
        async getRange(...call) {
          if (!hasTakenOver) {
            hasTakenOver = true;
            await runExport(newer, exportId);
          }
          return app.storage.getRange(...call);
        },
      },
    });
    expect(await stale.write(exportId)).toMatchObject({ status: 'ready' });
    expect(hasTakenOver).toBe(true);
    const { size_bytes: sizeBytes } = await readExportRow(exportId);
    expect(await app.storage.sizeOf(`exports/${exportId}.zip`)).toBe(Number(sizeBytes));
    expect((await filesOf(exportId)).has('manifest.json')).toBe(true);
    expect(await hoursUntilDeleted(exportId)).toBeGreaterThan(48);
  });

  test('is left to the worker that has taken it over', async () => {
    const { exportId } = await arrange({ messages: 6 });
    const staleHasEnded = Promise.withResolvers<void>();
    const newerWrites = Promise.withResolvers<void>();
    const newer = createTestExportRunner(app, {
      storage: storageWith((uploads) => ({
        async uploadPart(...call) {
          newerWrites.resolve();
          await staleHasEnded.promise;
          return uploads.uploadPart(...call);
        },
      })),
    });
    let finished: Promise<void> | undefined;
    const stale = createTestExportRunner(app, {
      storage: {
        ...app.storage,
        async getRange(...call) {
          finished ??= runExport(newer, exportId);
          await newerWrites.promise;
          return app.storage.getRange(...call);
        },
      },
    });
    await expect(stale.write(exportId)).rejects.toThrow('Another worker writes the export');
    staleHasEnded.resolve();
    await finished;
    expect((await filesOf(exportId)).has('manifest.json')).toBe(true);
  });

  test('is not made available by a stale worker that completed its upload first', async () => {
    const { exportId } = await arrange();
    const newer = createTestExportRunner(app);
    const stale = createTestExportRunner(app, {
      storage: storageWith((uploads) => ({
        async complete(...call) {
          await uploads.complete(...call);
          await runExport(newer, exportId);
        },
      })),
    });
    expect(await stale.write(exportId)).toMatchObject({ status: 'ready' });
    expect((await filesOf(exportId)).has('manifest.json')).toBe(true);
    expect(await hoursUntilDeleted(exportId)).toBeGreaterThan(48);
  });

  test('stops when aborted, and removes its upload', async () => {
    const { exportId } = await arrange();
    const reason = new Error('shut down');
    const controller = new AbortController();
    let uploadId: unknown;
    const runner = createTestExportRunner(app, {
      storage: storageWith((uploads) => ({
        async uploadPart(...call) {
          uploadId = call[1];
          controller.abort(reason);
          return uploads.uploadPart(...call);
        },
      })),
    });
    await expect(runner.write(exportId, { signal: controller.signal })).rejects.toBe(reason);
    await expectNoUpload(exportId, uploadId);
    await runExport(createTestExportRunner(app), exportId);
  });

  test('stops at once when aborted during a storage outage', async () => {
    const { exportId } = await arrange();
    const reason = new Error('shut down');
    const controller = new AbortController();
    let calls = 0;
    const runner = createTestExportRunner(app, {
      retryDelayMs: 600_000,
      storage: {
        ...app.storage,
        async getRange() {
          calls += 1;
          throw unavailable();
        },
      },
    });
    const written = runner.write(exportId, {
      signal: controller.signal,
      onProgress: () => {
        if (calls > 2) controller.abort(reason);
      },
    });
    await expect(written).rejects.toBe(reason);
  });

  test('omits rows deleted or created meanwhile and keeps the manifest correct', async () => {
    const { organization, exportId } = await arrange({ messages: 10 });
    const deletedIds = organization.messageIds.slice(-4);
    const change = async () =>
      asSchemaOwner(async (client) => {
        await client.query('delete from messages where id = any($1)', [deletedIds]);
        await client.query(
          `insert into list_entries (id, org_id, direction, effect, entry, created_at)
           values ('lse_7zzzzzzzzzzzzzzzzzzzzzzzzz', $1, 'send', 'block', 'later.example', now())`,
          [organization.organizationId],
        );
      });
    const runner = createTestExportRunner(app, { storage: storageWithStart(change) });
    await runExport(runner, exportId);
    const files = await filesOf(exportId);
    const manifest = JSON.parse(String(await files.get('manifest.json')?.read()));
    expect(manifest).toMatchObject({ files: { messages: 16 }, missing_files: 0 });
    for (const { file, rows } of manifest.tables)
      expect({ file, rows }).toEqual({ file, rows: (await linesOf(files.get(file) as never)).length });
    const names = [...files.keys()];
    for (const id of deletedIds) expect(names).not.toContain(`messages/${id}.eml`);
    expect(String(await files.get('data/list_entries.jsonl')?.read())).not.toContain('later.example');
    await asSchemaOwner((client) => client.query(`delete from list_entries where id like 'lse_7zzz%'`));
  });

  test('reports progress that never passes its total, however low the estimate was', async () => {
    const { organization, exportId } = await arrange({ messages: 4 });
    const runner = createTestExportRunner(app, {
      // After the estimate, and before the first row is read.
      storage: storageWithStart(async () => {
        const threadId = await addLongThread(organization.organizationId);
        await asSchemaOwner((client) =>
          client.query(
            `update messages set raw_key = $2 where id in (select id from messages where thread_id = $1 limit 20)`,
            [threadId, `raw/${organization.messageIds[0]}`],
          ),
        );
      }),
    });
    const reported: number[][] = [];
    const read = (progress: string) => reported.push([...progress.matchAll(/\d+/g)].map(Number));
    await runner.write(exportId, { onProgress: read });
    const last = reported.at(-1) ?? [];
    expect(last[0]).toBeGreaterThan(reported[0]?.[1] ?? 0);
    expect(last[2]).toBeGreaterThan(700);
    expect(last[2]).toBeGreaterThan(reported[0]?.[3] ?? 0);
    for (const [filesDone = 0, filesTotal = 0, rowsDone = 0, rowsTotal = 0] of reported) {
      expect(filesDone).toBeLessThanOrEqual(filesTotal);
      expect(rowsDone).toBeLessThanOrEqual(rowsTotal);
    }
    const { rowsDone, rowsTotal, filesDone, filesTotal, status } = await readExportRow(exportId);
    expect({ status, rowsTotal, filesTotal }).toEqual({
      status: 'ready',
      rowsTotal: rowsDone,
      filesTotal: filesDone,
    });
  });

  test('contains each thread once, even if it loses its first messages and gains new ones meanwhile', async () => {
    const { organization, exportId } = await arrange({ messages: 2 });
    const threadId = await addLongThread(organization.organizationId);
    const change = () =>
      asSchemaOwner(async (client) => {
        await client.query(
          `insert into messages ${MESSAGE_COLUMNS} select $1, org_id, env_id, inbox_id, thread_id, direction, status,
             from_email, "to", cc, bcc, reply_to, subject, headers, now(), now() from messages where thread_id = $2 limit 1`,
          [newId('message'), threadId],
        );
        await client.query(
          `delete from messages where id in (select id from messages where thread_id = $1 order by id limit 600)`,
          [threadId],
        );
      });
    let threadsSoFar = 0;
    const runner = createTestExportRunner(app, {
      database: {
        ...app.worker,
        async readAsTenant(...call) {
          const page = await app.worker.readAsTenant(...call);
          const ids = JSON.stringify(page ?? '').match(/\{\\"id\\":\\"thr_/g) ?? [];
          const isEnough = threadsSoFar < 2 && threadsSoFar + ids.length >= 2;
          threadsSoFar += ids.length;
          if (isEnough) await change();
          return page;
        },
      },
    });
    await runExport(runner, exportId);
    expect(threadsSoFar).toBe(3);
    const threads = await linesOf((await filesOf(exportId)).get('data/threads.jsonl') as never);
    const ids = threads.map(({ id }) => id);
    expect(ids).toContain(threadId);
    expect(ids).toHaveLength(3);
    expect(new Set(ids).size).toBe(3);
  });

  test('keeps the beginning of a file that disappears while being read and reports it', async () => {
    const { exportId } = await arrange({
      attachments: [{ filename: 'long.bin', bytes: Buffer.alloc(2_500, 'long') }],
    });
    const runner = createTestExportRunner(app, {
      storage: {
        ...app.storage,
        async getRange(key, start, maxBytes) {
          if (start > 700) throw new StorageError('missing', 'The object does not exist.');
          return app.storage.getRange(key, start, maxBytes);
        },
      },
    });
    await runExport(runner, exportId);
    const files = await filesOf(exportId);
    const cut = [...files.keys()].filter((name) => name.endsWith('/long.bin'));
    expect(cut).toHaveLength(2);
    for (const name of cut) expect(await files.get(name)?.read()).toHaveLength(1_400);
    expect(await linesOf(files.get('data/missing_files.jsonl') as never)).toEqual(
      cut.map((file) => ({ file, reason: 'cut short', size_bytes: 2_500 })),
    );
    const manifest = JSON.parse(String(await files.get('manifest.json')?.read()));
    expect(manifest).toMatchObject({ files: { attachments: 4 }, missing_files: 2 });
  });
});

describe('an export without a run', () => {
  test('is restarted; one whose run was terminated is canceled and its parts removed', async () => {
    const { exportId } = await arrange();
    const runner = createTestExportRunner(app);
    await expect(createCrashingRunner(app, { afterParts: 2 }).write(exportId)).rejects.toThrow('gone');
    const source = overdueExports(app.worker, runner);
    const own = async () =>
      (await source.take(10_000)).find(({ start }) => start.workflowId === `export/${exportId}`);
    expect(await own()).toBeUndefined();
    await asSchemaOwner((client) =>
      client.query(`update exports set updated_at = now() - interval '1 hour' where id = $1`, [exportId]),
    );
    const overdue = await own();
    expect(overdue?.start).toMatchObject({ workflowType: 'exportOrganization', input: { exportId } });
    expect(await own()).toBeUndefined();
    const { upload_id: uploadId } = await readExportRow(exportId);
    if (typeof overdue?.whenStopped === 'function') await overdue.whenStopped();
    expect(await readExportRow(exportId)).toMatchObject({
      status: 'canceled',
      status_detail: 'Stopped by an operator.',
      upload_id: null,
    });
    await expectNoUpload(exportId, uploadId);
  });

  test('is cleaned up if its parts are left; an archive is deleted a day after it expired', async () => {
    const canceled = await arrange();
    const ready = await arrange();
    const runner = createTestExportRunner(app);
    const crashing = createCrashingRunner(app, { afterParts: 2 });
    await expect(crashing.write(canceled.exportId)).rejects.toThrow('gone');
    await runExport(runner, ready.exportId);
    await asSchemaOwner((client) =>
      client.query(
        `update exports set status = 'canceled', updated_at = now() - interval '1 hour' where id = $1`,
        [canceled.exportId],
      ),
    );
    const later = (hours: number) =>
      createTestExportRunner(app, { now: () => new Date(Date.now() + hours * 3_600_000) });
    await later(23).cleanUp();
    expect(await readExportRow(canceled.exportId)).toMatchObject({ upload_id: null });
    expect(await readExportRow(ready.exportId)).toMatchObject({ status: 'ready' });
    await later(25).cleanUp();
    expect(await readExportRow(ready.exportId)).toMatchObject({ status: 'expired' });

    const key = `exports/${ready.exportId}.zip`;
    expect(await hoursUntilDeleted(ready.exportId)).toBeGreaterThan(48);
    expect(await hoursUntilDeleted(ready.exportId)).toBeLessThan(50);
    await asSchemaOwner((client) =>
      client.query(
        `update unclaimed_objects set due_at = date_trunc('milliseconds', now()) where storage_key = $1`,
        [key],
      ),
    );
    await sweepObjects(app.worker, app.storage, ready.organization.organizationId);
    expect(await app.storage.sizeOf(key)).toBeUndefined();
  });
});
