import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** The user PostgreSQL runs as, if it is another than the current one. */
export interface Owner {
  uid?: number;
  gid?: number;
}

interface Binaries {
  postgres: string;
  initdb: string;
}

/** Survives a reboot, and every user may enter it. */
const SHARED_FOLDER = '/var/tmp';
/** In the requested data directory if the data is elsewhere: without this file the data there is deleted. */
const MARKER = 'moved-to';

/** PostgreSQL refuses to run as root: under root it runs as another user, otherwise as the current one. */
export function serverOwner(dataDir: string): Owner {
  if (process.getuid?.() !== 0) return {};
  const current = existsSync(dataDir) ? statSync(dataDir) : undefined;
  return current && current.uid !== 0 ? { uid: current.uid, gid: current.gid } : unprivilegedUser();
}

/**
 * The data folder, owned by the server's user. If the clone is in a folder that only root may enter (below /root, or made
 * by `mktemp -d`), that user cannot reach it; the data is then in /var/tmp, and a file in the clone says where.
 */
export function ownedDataDir(wanted: string, owner: Owner, log: (line: string) => void): string {
  mkdirSync(wanted, { recursive: true });
  chmodSync(wanted, 0o700);
  if (owner.uid === undefined || owner.gid === undefined) return wanted;
  const dataDir = mayEnter(dirname(wanted), owner) ? wanted : elsewhere(wanted, log);
  chownSync(dataDir, owner.uid, owner.gid);
  return dataDir;
}

function elsewhere(wanted: string, log: (line: string) => void): string {
  const dataDir = join(
    SHARED_FOLDER,
    `agent-email-data-${createHash('sha256').update(wanted).digest('hex').slice(0, 12)}`,
  );
  const marker = join(wanted, MARKER);
  if (!existsSync(marker)) rmSync(dataDir, { recursive: true, force: true });
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  writeFileSync(marker, `${dataDir}\n`);
  log(`PostgreSQL's user may not enter ${dirname(wanted)}: the data is in ${dataDir}`);
  return dataDir;
}

/** The programs, copied once to a place where the server's user may run them, if it may not run the originals. */
export function runnableBinaries(binaries: Binaries, owner: Owner): Binaries {
  const native = dirname(dirname(binaries.postgres));
  if (owner.uid === undefined || mayEnter(dirname(binaries.postgres), owner)) return binaries;
  const { version } = JSON.parse(readFileSync(join(dirname(native), 'package.json'), 'utf8')) as {
    version: string;
  };
  const copy = join(SHARED_FOLDER, `agent-email-postgres-${version}`);
  if (!isRootsOwn(copy)) {
    const unfinished = `${copy}-${process.pid}`;
    rmSync(unfinished, { recursive: true, force: true });
    cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true });
    chmodSync(unfinished, 0o755);
    rmSync(copy, { recursive: true, force: true });
    renameSync(unfinished, copy);
  }
  const moved = (program: string) => join(copy, 'bin', basename(program));
  return { postgres: moved(binaries.postgres), initdb: moved(binaries.initdb) };
}

/** The name is predictable, so a folder of another user there must not be used. */
function isRootsOwn(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { uid, mode } = statSync(folder);
  return uid === 0 && (mode & 0o022) === 0;
}

function mayEnter(folder: string, owner: Owner): boolean {
  return spawnSync('/bin/sh', ['-c', 'cd "$1"', 'sh', folder], { ...owner, cwd: '/' }).status === 0;
}

/** Read from the file, since a small system may lack the program `id`. */
function unprivilegedUser(): Owner {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const wanted of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${wanted}:`))?.split(':') ?? [];
    if (Number(uid) > 0 && Number(gid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(
    'PostgreSQL does not run as root and this machine has neither a user "postgres" nor "nobody". Create one, or start as another user.',
  );
}
