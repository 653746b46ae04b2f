import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import pg from 'pg';
import { MEMORY_ENVIRONMENTS } from '../dev/services.ts';
import {
  type IsolatedService,
  residentBytes,
  startIsolatedService,
  waitFor,
} from '../test/support/isolated-service.ts';
import { createInbox } from './send.ts';

const CONCURRENT_MESSAGES = 8;
const MESSAGE_BYTES = 25 * 1024 * 1024;
const SAMPLE_MS = 50;
const TARGET_MIB = 400;

/**
 * `npm run bench -- memory`: measures the inbound worker, as a separate process, while eight messages of 25 MiB arrive
 * concurrently. Samples the resident memory of the worker together with all its parsers, and of the listener, which is a
 * separate process too.
 */
export async function benchMemory(): Promise<void> {
  const stack = await startIsolatedService({});
  try {
    const inboxId = await createInbox(stack);
    await stack.kill('workers');
    const inboundWorker = await stack.startScript('workers/inbound.ts', MEMORY_ENVIRONMENTS.workers);
    const listener = await stack.startScript('workers/inbound-smtp.ts', MEMORY_ENVIRONMENTS.workers);
    const database = new pg.Client({ connectionString: stack.ownerDatabaseUrl });
    await database.connect();
    const { rows } = await database.query('select email from inboxes where id = $1', [inboxId]);
    const stored = async () =>
      Number(
        (await database.query('select count(*) from messages where inbox_id = $1', [inboxId])).rows[0].count,
      );
    const figures: Record<string, object> = {};
    for (const [name, build] of Object.entries(MESSAGES)) {
      const goal = (await stored()) + CONCURRENT_MESSAGES;
      const watch = watchMemory({ inboundWorker, listener });
      const startedAt = performance.now();
      await Promise.all(
        Array.from({ length: CONCURRENT_MESSAGES }, () => handOver(stack, rows[0].email, build)),
      );
      await waitFor('all messages to be stored', async () => {
        if ((await stored()) < goal) throw new Error('not yet');
      });
      figures[name] = {
        ...watch.stop(),
        aim: TARGET_MIB,
        seconds: Math.round((performance.now() - startedAt) / 100) / 10,
      };
    }
    await database.end();
    console.table(figures);
  } finally {
    await stack.stop();
  }
}

/** Lines of each kind of message, after its header. */
const MESSAGES: Record<string, () => Iterable<string>> = {
  '8 × 25 MiB, a file each': fileOf,
  '8 × 25 MiB of text': textOf,
};

function* fileOf(): Iterable<string> {
  yield 'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee file.\r\n--b\r\n';
  yield 'Content-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=large.bin\r\n';
  yield 'Content-Transfer-Encoding: base64\r\n\r\n';
  const lines = randomBytes(57 * 1_000)
    .toString('base64')
    .replace(/.{76}/g, '$&\r\n');
  for (let sent = 0; sent < MESSAGE_BYTES; sent += lines.length) yield lines;
  yield '--b--\r\n';
}

function* textOf(): Iterable<string> {
  yield 'Content-Type: text/plain; charset=utf-8\r\n\r\n';
  const lines = `${'A few words of text, in lines as people write them.\r\n'.repeat(1_000)}`;
  for (let sent = 0; sent < MESSAGE_BYTES; sent += lines.length) yield lines;
}

/** Speaks SMTP itself, so that the bench never holds a whole message. */
function handOver(stack: IsolatedService, to: string, build: () => Iterable<string>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = createConnection(stack.inboundPort, '127.0.0.1');
  const steps = ['EHLO bench.example', 'MAIL FROM:<ada@people.example>', `RCPT TO:<${to}>`, 'DATA'];
  const send = async () => {
    socket.write(
      `From: ada@people.example\r\nSubject: Large\r\nMessage-ID: <${randomBytes(8).toString('hex')}@x>\r\n`,
    );
    for (const lines of build())
      if (!socket.write(lines)) await new Promise((drained) => socket.once('drain', drained));
    socket.write('.\r\n');
  };
  socket.setEncoding('latin1').on('data', (answer: string) => {
    const last = answer.trimEnd().split('\r\n').at(-1) ?? '';
    if (!/^\d{3} /.test(last)) return;
    if (/^[45]/.test(last)) return reject(new Error(last));
    if (last.startsWith('354')) return void send();
    const next = steps.shift();
    if (next !== undefined) return void socket.write(`${next}\r\n`);
    socket.end('QUIT\r\n');
    resolve();
  });
  socket.once('error', reject);
  return promise;
}

function watchMemory({ inboundWorker, listener }: { inboundWorker: number; listener: number }) {
  const peak = { worker: 0, 'worker and parsers': 0, listener: 0 };
  const sample = () => {
    const worker = mebibytes(residentBytes(inboundWorker));
    const parsers = childrenOf(inboundWorker).map((pid) => mebibytes(residentBytes(pid)));
    const all = worker + parsers.reduce((sum, each) => sum + each, 0);
    peak.worker = Math.max(peak.worker, worker);
    peak['worker and parsers'] = Math.max(peak['worker and parsers'], all);
    peak.listener = Math.max(peak.listener, mebibytes(residentBytes(listener)));
  };
  sample();
  const before = peak['worker and parsers'];
  const timer = setInterval(sample, SAMPLE_MS);
  return {
    stop() {
      clearInterval(timer);
      return { before, ...peak };
    },
  };
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1]) === parent;
      } catch {
        return false;
      }
    });
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
