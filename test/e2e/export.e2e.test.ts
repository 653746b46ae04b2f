import { randomBytes } from 'node:crypto';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterAll, describe, expect, jest, test } from '@jest/globals';
import { newId } from '../../platform/ids.ts';
import { createStorage, type Storage } from '../../platform/storage.ts';
import { eventually } from '../support/eventually.ts';
import { useIsolatedOrganization } from '../support/isolated-organization.ts';
import { readZip } from '../support/zip-reader.ts';

jest.setTimeout(300_000);
/** Temporal notices a dead worker after the heartbeat timeout of half a minute. */
const TIMEOUT_MS = 200_000;
const MEBIBYTE = 1024 * 1024;
const MESSAGES = 90;

const folder = mkdtempSync(join(tmpdir(), 'agent-email-export-e2e-'));
const own = useIsolatedOrganization();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Messages that share one raw object; the archive contains it once per message. */
async function fill(bytes: Buffer): Promise<string[]> {
  const { body: inbox } = await own.call('POST', '/inboxes', {});
  await withStorage((storage) => storage.putBytes('raw/shared', bytes, 'message/rfc822'));
  const ids = Array.from({ length: MESSAGES }, () => newId('message'));
  const thread = newId('thread');
  const { rows } = await own.database.query('select env_id from inboxes where id = $1', [inbox.id]);
  const place = [own.organizationId, rows[0].env_id, inbox.id];
  await own.database.query(
    `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, last_message_at, created_at, updated_at)
     values ($4, $1, $2, $3, '', '', now(), now(), now())`,
    [...place, thread],
  );
  await own.database.query(
    `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
       reply_to, subject, headers, raw_key, size_bytes, created_at, updated_at, received_at)
     select id, $1, $2, $3, $4, 'inbound', 'received', 'a@people.example', '[]', '[]', '[]', '[]', 'Large', '{}',
       'raw/shared', $6, now(), now(), now()
     from unnest($5::text[]) id`,
    [...place, thread, ids, bytes.length],
  );
  return ids;
}

const rowOf = async (exportId: string) =>
  (
    await own.database.query(
      'select upload_id, started_at, size_bytes::bigint::float8 as size_bytes from exports where id = $1',
      [exportId],
    )
  ).rows[0];

/** Waits until some parts of the archive are uploaded. */
const untilWriting = (exportId: string) =>
  eventually(async () => expect((await rowOf(exportId)).size_bytes).toBeGreaterThan(0), TIMEOUT_MS);

async function withStorage<T>(work: (storage: Storage) => Promise<T>): Promise<T> {
  const storage = createStorage(own.service.config);
  return work(storage).finally(() => storage.close());
}

const archives = () =>
  withStorage(async (storage) => (await storage.listPage('exports/')).objects.map(({ key }) => key));

describe('an export', () => {
  test('whose worker is killed starts again, and its archive is whole and the only one', async () => {
    const bytes = randomBytes(2 * MEBIBYTE);
    const ids = await fill(bytes);
    const path = `/organizations/${own.organizationId}/export`;
    const started = await own.call('GET', path);
    expect(started.status).toBe(202);
    const exportId = String(started.body.export_id);
    await untilWriting(exportId);
    await own.service.kill('workers');
    const killed = await rowOf(exportId);
    expect(killed.upload_id).toEqual(expect.any(String));
    expect(killed.size_bytes).toBeLessThan((MESSAGES - 10) * bytes.length);
    await own.service.start('workers');
    await eventually(async () => expect((await own.call('GET', path)).status).toBe(200), TIMEOUT_MS);
    const finished = await rowOf(exportId);
    expect(finished.upload_id).toBeNull();
    expect(finished.started_at.getTime()).toBeGreaterThan(killed.started_at.getTime());
    expect(await archives()).toEqual([`exports/${exportId}.zip`]);
    await withStorage((storage) =>
      expect(
        storage.multipartUploads.uploadPart(`exports/${exportId}.zip`, killed.upload_id, 1, Buffer.from('x')),
      ).rejects.toMatchObject({ failure: 'missing' }),
    );

    const { body: ready } = await own.call('GET', path);
    expect(ready).toMatchObject({ export_id: exportId, status: 'ready' });
    const file = join(folder, 'export.zip');
    const download = await fetch(String(ready.download_url));
    await pipeline(Readable.fromWeb(download.body as never), createWriteStream(file));
    const files = new Map((await readZip(file)).map((entry) => [entry.name, entry]));
    const manifest = JSON.parse(String(await files.get('manifest.json')?.read()));
    expect(manifest).toMatchObject({ files: { messages: MESSAGES }, missing_files: 0 });
    for (const id of ids) expect((await files.get(`messages/${id}.eml`)?.read())?.equals(bytes)).toBe(true);
    await expect(own.temporal.workflow.getHandle(`export/${exportId}`).result()).resolves.toBe('ready');
    await eventually(async () => {
      const { rows } = await own.database.query(
        `select status from notifications where template = 'export-ready'`,
      );
      expect(rows).toEqual([{ status: 'sent' }]);
    }, TIMEOUT_MS);
  });

  test('that is canceled while being written stops and leaves nothing behind', async () => {
    const path = `/organizations/${own.organizationId}/export`;
    const { body: last } = await own.call('GET', path);
    await own.call('DELETE', `/organizations/${own.organizationId}/exports/${last.export_id}`);
    const exportId = String((await own.call('GET', path)).body.export_id);
    await untilWriting(exportId);
    const canceled = await own.call('DELETE', `/organizations/${own.organizationId}/exports/${exportId}`);
    expect(canceled.body.status).toBe('canceled');
    await eventually(async () => expect((await rowOf(exportId)).upload_id).toBeNull(), TIMEOUT_MS);
    expect(await archives()).not.toContain(`exports/${exportId}.zip`);
    await expect(own.temporal.workflow.getHandle(`export/${exportId}`).result()).resolves.toBe('canceled');
  });
});
