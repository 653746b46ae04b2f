import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { deflateSync } from 'node:zlib';
import { afterAll, describe, expect, test } from '@jest/globals';
import { createFileReader, READER_NODE_OPTIONS } from '../../domain/attachments/text/file-reader.ts';
import { pdf, pdfText } from '../support/built-files.ts';
import { eventually } from '../support/eventually.ts';

const entry = resolve(import.meta.dirname, '../../workers/file-reader.ts');
const NAME = { contentType: 'application/octet-stream', filename: 'file' };
// Long enough for a slow machine to fill the memory.
const reader = createFileReader({ entry, timeoutMs: 300_000 });
afterAll(() => reader.close());
const FILE = pdf([pdfText('Words')]);
/** Its page has more pieces of text than fit into the memory, and takes seconds. */
const SLOW = pdf(
  [deflateSync(`BT /F1 1 Tf 50 700 Td ${'(x) Tj 0 -90 Td (y) Tj 0 90 Td '.repeat(3_000_000)} ET`)],
  {
    filter: '/Filter /FlateDecode',
  },
);

function childrenOf(parent: number): number[] {
  const { stdout } = spawnSync('ps', ['-o', 'pid=,args=', '--ppid', String(parent)], { encoding: 'utf8' });
  const lines = stdout.split('\n').filter((line) => line.includes('workers/file-reader'));
  return lines.map((line) => Number.parseInt(line, 10));
}

describe('the file reader', () => {
  test('reads a PDF in a process that ends afterwards', async () => {
    const result = await reader.read('org_1', NAME, async () => FILE);
    expect(result).toEqual({ format: 'pdf', text: 'Words', leftOut: [] });
    await eventually(() => expect(childrenOf(process.pid)).toEqual([]));
  });

  test('reads where the folder of packages is a symbolic link', async () => {
    const root = resolve(import.meta.dirname, '../..');
    const folder = mkdtempSync(join(tmpdir(), 'agent-email-linked-'));
    for (const part of ['domain', 'platform', 'workers', 'package.json'])
      cpSync(join(root, part), join(folder, part), { recursive: true });
    symlinkSync(realpathSync(join(root, 'node_modules')), join(folder, 'node_modules'));
    const module = (await import(
      join(folder, 'domain/attachments/text/file-reader.ts')
    )) as typeof import('../../domain/attachments/text/file-reader.ts');
    const linked = module.createFileReader({ entry: join(folder, 'workers/file-reader.ts') });
    const result = await linked.read('org_1', NAME, async () => FILE);
    expect(result).toMatchObject({ text: 'Words' });
    await linked.close();
    rmSync(folder, { recursive: true });
  });

  test('stops a file that takes too long, and says so', async () => {
    const impatient = createFileReader({ entry, timeoutMs: 700, minCpuShare: 0 });
    const result = await impatient.read('org_1', NAME, async () => SLOW);
    expect(result).toMatchObject({
      failure: { reason: 'Reading it was stopped: it took more than 0.7 s.' },
      wasStopped: true,
    });
    await impatient.close();
  });

  test('stops a file that takes too much memory', async () => {
    const result = await reader.read('org_1', NAME, async () => SLOW);
    expect(result).toMatchObject({ wasStopped: true });
    expect(JSON.stringify(result)).toMatch(/ran out of memory|more than 512 MiB/);
  });

  test('is unavailable if its process is killed from outside, and then reads again', async () => {
    const read = reader.read('org_1', NAME, async () => SLOW);
    const failed = expect(read).rejects.toMatchObject({ code: 'unavailable' });
    await eventually(() => expect(childrenOf(process.pid)).toHaveLength(1));
    for (const pid of childrenOf(process.pid)) process.kill(pid, 'SIGKILL');
    await failed;
    expect(await reader.read('org_1', NAME, async () => FILE)).toMatchObject({ text: 'Words' });
  });

  test('reads two files of an organization at a time; another one waits, and not forever', async () => {
    const hurried = createFileReader({ entry, waitMs: 100 });
    const { promise: held, resolve: release } = Promise.withResolvers<Buffer>();
    const reading = [1, 2].map(() => hurried.read('org_1', NAME, () => held));
    await expect(hurried.read('org_1', NAME, async () => FILE)).rejects.toMatchObject({
      code: 'unavailable',
    });
    expect(await hurried.read('org_2', NAME, async () => FILE)).toMatchObject({ text: 'Words' });
    release(FILE);
    expect(await Promise.all(reading)).toHaveLength(2);
    await hurried.close();
  });

  test('fails if the file cannot be loaded', async () => {
    const load = () => Promise.reject(new Error('no storage'));
    await expect(reader.read('org_1', NAME, load)).rejects.toThrow('no storage');
  });
});

test('its process reaches no network, reads only its code, writes no file and starts no process', () => {
  const script = `
    import { denyNetwork } from '${resolve(import.meta.dirname, '../../platform/deny-network.ts')}';
    import { createSocket } from 'node:dgram';
    import { connect } from 'node:net';
    import { spawnSync } from 'node:child_process';
    import { readFileSync, writeFileSync } from 'node:fs';
    denyNetwork();
    const tries = {
      tcp: () => connect(9, '127.0.0.1'),
      udp: () => createSocket('udp4').send('x', 9, '127.0.0.1'),
      fetch: () => fetch('http://127.0.0.1:12345/'),
      https: () => fetch('https://127.0.0.1:12345/'),
      write: () => writeFileSync('/tmp/x', 'x'),
      spawn: () => spawnSync('true').error ?? 'started',
      settings: () => readFileSync('${resolve(import.meta.dirname, '../../.env.example')}'),
      system: () => readFileSync('/etc/passwd'),
    };
    for (const [name, attempt] of Object.entries(tries)) {
      try { await attempt(); console.log(name, 'allowed'); }
      catch (error) { console.log(name, error.cause?.message ?? error.message); }
    }`;
  const { stdout } = spawnSync(
    process.execPath,
    [...READER_NODE_OPTIONS, '--input-type=module', '-e', script],
    { encoding: 'utf8' },
  );
  const [tcp, udp, http, https, write, spawn, settings, system] = stdout.trim().split('\n');
  for (const line of [tcp, udp, http, https]) expect(line).toMatch(/has no network/);
  for (const line of [write, spawn, settings, system]) expect(line).toMatch(/restricted|permission/i);
});
