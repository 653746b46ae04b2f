import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { downloadOfficial } from '../../dev/stack/official-download.ts';
import { findTemporalCli, findTemporalTestServer } from '../../dev/stack/temporal-binaries.ts';

let folder: string;
let lines: string[];
const log = (line: string) => void lines.push(line);

function program(path: string, output: string): string {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, `#!/bin/sh\necho '${output}'\n`);
  chmodSync(path, 0o755);
  return path;
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'binaries-test-'));
  lines = [];
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the Temporal CLI', () => {
  const options = (environment: NodeJS.ProcessEnv) => ({ cacheDir: join(folder, 'cache'), environment, log });

  test('is taken from the variable first, which must name a program', async () => {
    const own = program(join(folder, 'own'), '');
    await expect(findTemporalTestServer(options({ TEMPORAL_TEST_SERVER: own }))).resolves.toBe(own);
    await expect(findTemporalCli(options({ TEMPORAL_CLI: join(folder, 'absent') }))).rejects.toThrow(
      'TEMPORAL_CLI names',
    );
  });

  test('is taken from PATH if it is new enough', async () => {
    const recent = program(join(folder, 'b', 'temporal'), 'temporal version 1.10.0 (Server 1.32.0)');
    const old = program(join(folder, 'a', 'temporal'), 'temporal version 1.3.9 (Server 1.27.0)');
    const PATH = [join(old, '..'), join(recent, '..')].join(':');
    await expect(findTemporalCli(options({ PATH }))).resolves.toBe(recent);
    expect(lines).toEqual([`${old} is version 1.3.9; the Temporal dev server must be 1.4.0 or newer`]);
  });

  test('is taken from the cache in the pinned version', async () => {
    const cached = program(join(folder, 'cache', 'temporal-1.9.1'), '');
    await expect(findTemporalCli(options({ PATH: '' }))).resolves.toBe(cached);
  });

  test('is not downloaded further after an abort, which leaves no files', async () => {
    const signal = AbortSignal.abort(new Error('given up'));
    await expect(findTemporalCli({ ...options({ PATH: '' }), signal })).rejects.toThrow('given up');
    expect(readdirSync(join(folder, 'cache'))).toEqual([]);
  });
});

describe('the official download', () => {
  let server: Server;
  let origin: string;
  let info: unknown;
  let asked: string[];

  beforeEach(async () => {
    program(join(folder, 'source', 'temporal'), 'hello');
    spawnSync('tar', ['-czf', join(folder, 'archive.tar.gz'), '-C', join(folder, 'source'), 'temporal']);
    asked = [];
    server = createServer((request, response) => {
      asked.push(request.url ?? '');
      if (request.url === '/archive.tar.gz') response.end(readFileSync(join(folder, 'archive.tar.gz')));
      else if (info === undefined) response.writeHead(503).end();
      else response.end(JSON.stringify(info));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    mkdirSync(join(folder, 'target'));
  });

  afterEach(() => new Promise((resolve) => server.close(resolve)));

  const download = () => downloadOfficial({ artifact: 'cli', folder: join(folder, 'target'), log, origin });

  test('requests this system and extracts the named file from the archive', async () => {
    info = { archiveUrl: `${origin}/archive.tar.gz`, fileToExtract: 'temporal' };
    const file = await download();
    expect(existsSync(file)).toBe(true);
    expect(asked[0]).toMatch(/^\/cli\/default\?platform=\w+&arch=\w+$/);
  });

  test('names the server that failed', async () => {
    info = undefined;
    await expect(download()).rejects.toThrow(/^127\.0\.0\.1:\d+ returned 503$/);
    info = { archiveUrl: 'x', fileToExtract: '--checkpoint-action=exec=x' };
    await expect(download()).rejects.toThrow('a response this version does not understand');
  });
});
