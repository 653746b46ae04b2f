import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { MEMORY_ENVIRONMENTS } from '../dev/services.ts';
import { newId } from '../platform/ids.ts';
import { createStorage } from '../platform/storage.ts';
import { apiClient } from '../test/support/client.ts';
import {
  type IsolatedService,
  residentBytes,
  startIsolatedService,
  waitFor,
} from '../test/support/isolated-service.ts';
import { cpuBetween, cpuSeconds } from './cpu.ts';
import { createInbox } from './send.ts';

const MESSAGES = Number(process.env.BENCH_EXPORT_MESSAGES ?? 100_000);
const FILES_MIB = Number(process.env.BENCH_EXPORT_FILES_MIB ?? 2_048);
const MEBIBYTE = 1024 * 1024;
const FILE_MIB = 16;
const MESSAGE_BYTES = 6 * 1024;
const FILL_BATCH = 10_000;
const SAMPLE_MS = 50;
const TIMEOUT_MS = 3_600_000;

/**
 * `npm run bench -- export`: an archive of BENCH_EXPORT_MESSAGES (100,000) messages of 6 KiB and of BENCH_EXPORT_FILES_MIB
 * (2,048) MiB of incompressible attachments, written by a separate maintenance worker. Measures its resident memory and
 * its growth; an archive of a tenth of the size shows whether memory depends on the size.
 */
export async function benchExport(): Promise<void> {
  const stack = await startIsolatedService({});
  const owner = new pg.Client({ connectionString: stack.ownerDatabaseUrl });
  await owner.connect();
  try {
    const inboxId = await createInbox(stack);
    await stack.kill('workers');
    await putObjects(stack);
    const figures: Record<string, object> = {};
    const worker = await stack.startScript('workers/maintenance.ts', MEMORY_ENVIRONMENTS.maintenance);
    await fill(owner, inboxId, MESSAGES / 10, FILES_MIB / 10);
    figures['a tenth'] = await exportOnce(stack, worker);
    await fill(owner, inboxId, (MESSAGES * 9) / 10, (FILES_MIB * 9) / 10);
    figures.all = await exportOnce(stack, worker);
    console.table(figures);
  } finally {
    await owner.end();
    await stack.stop();
  }
}

async function putObjects(stack: IsolatedService): Promise<void> {
  const storage = createStorage(stack.config);
  const mail = `Subject: Bench\r\n\r\n${'A few words of text, in lines as people write them.\r\n'.repeat(200)}`;
  await storage.putBytes('raw/bench', Buffer.from(mail.slice(0, MESSAGE_BYTES)), 'message/rfc822');
  await storage.putBytes('attachments/bench', randomBytes(FILE_MIB * MEBIBYTE), 'application/octet-stream');
  storage.close();
}

/** Messages that share one object; the export reads it for each of them. */
async function fill(owner: pg.Client, inboxId: string, messages: number, filesMib: number): Promise<void> {
  const { rows } = await owner.query('select org_id, env_id from inboxes where id = $1', [inboxId]);
  const place = [rows[0].org_id, rows[0].env_id, inboxId];
  const thread = newId('thread');
  await owner.query(
    `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, last_message_at, created_at, updated_at)
     values ($4, $1, $2, $3, '', '', now(), now(), now())`,
    [...place, thread],
  );
  let last = '';
  for (let left = messages; left > 0; left -= FILL_BATCH) {
    const ids = Array.from({ length: Math.min(left, FILL_BATCH) }, () => newId('message'));
    last = ids.at(-1) ?? last;
    await owner.query(
      `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
         reply_to, subject, text_body, headers, raw_key, size_bytes, created_at, updated_at, received_at)
       select id, $1, $2, $3, $4, 'inbound', 'received', 'a@people.example', '[]', '[]', '[]', '[]', 'Bench',
         repeat('A few words of text. ' || id, 100), '{}', 'raw/bench', $6, now(), now(), now()
       from unnest($5::text[]) id`,
      [...place, thread, ids, MESSAGE_BYTES],
    );
  }
  const files = Array.from({ length: Math.round(filesMib / FILE_MIB) }, () => newId('attachment'));
  await owner.query(
    `insert into attachments (id, org_id, env_id, inbox_id, message_id, position, filename, content_type, size_bytes,
       sha256, storage_key, disposition, created_at)
     select id, $1, $2, $3, $4, n, 'file.bin', 'application/octet-stream', $6, '', 'attachments/bench', 'attachment', now()
     from unnest($5::text[]) with ordinality file (id, n)`,
    [...place, last, files, FILE_MIB * MEBIBYTE],
  );
}

async function exportOnce(stack: IsolatedService, worker: number): Promise<object> {
  const call = apiClient({ base_url: stack.baseUrl }, stack.apiKey);
  const { body: organization } = await call('GET', '/org');
  const path = `/organizations/${organization.id}/export`;
  const before = residentBytes(worker);
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, residentBytes(worker));
  }, SAMPLE_MS);
  const startedAt = performance.now();
  const cpuBefore = cpuSeconds();
  await call('GET', path);
  const { body } = await waitFor(
    'the archive to be ready',
    async () => {
      const reply = await call('GET', path);
      if (reply.status !== 200) throw new Error('not yet');
      return reply;
    },
    TIMEOUT_MS,
  );
  clearInterval(timer);
  const seconds = (performance.now() - startedAt) / 1000;
  const cpu = cpuBetween(cpuBefore, cpuSeconds());
  // The next call must start a new export.
  await call('DELETE', `/organizations/${organization.id}/exports/${body.export_id}`);
  const { rows_done: rows, files_done: files } = body.progress as Record<string, number>;
  const archiveMib = Number(body.size_bytes) / MEBIBYTE;
  return {
    rows,
    files,
    'archive MiB': Math.round(archiveMib),
    seconds: Math.round(seconds),
    'MiB/s': Math.round(archiveMib / seconds),
    'files/s': Math.round(Number(files) / seconds),
    'CPU s': cpu['workers/maintenance.ts'] ?? 0,
    // The parts of the stack without their own process, of which storage uses most.
    'CPU s storage': cpu['dev/start.ts'] ?? 0,
    'RSS before': Math.round(before / MEBIBYTE),
    'RSS peak': Math.round(peak / MEBIBYTE),
  };
}
