import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * `npm ci` rejects a lock file without the optional packages of other systems, and `npm install` omits them if the
 * registry mirror does not have them. `npx node dev/complete-lockfile.ts` adds them again, by version and system and
 * without a checksum; npm resolves them on their own systems.
 */
export const LOCKFILE = fileURLToPath(new URL('../package-lock.json', import.meta.url));

interface LockedPackage {
  version: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

export interface Lockfile {
  packages: Record<string, LockedPackage>;
}

const SYSTEMS = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'];
const PROCESSORS = ['arm64', 'arm', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'x64'];

export function readLockfile(): Lockfile {
  return JSON.parse(readFileSync(LOCKFILE, 'utf8')) as Lockfile;
}

/** Optional packages that are required but not locked, by the path they belong at. */
export function missingPackages({ packages }: Lockfile): Record<string, LockedPackage> {
  const missing: Record<string, LockedPackage> = {};
  for (const [path, { optionalDependencies = {}, dev }] of Object.entries(packages))
    for (const [name, version] of Object.entries(optionalDependencies))
      if (!isLocked(packages, path, name))
        missing[`node_modules/${name}`] = {
          version,
          ...(dev ? { dev } : {}),
          ...systemOf(name),
          optional: true,
        };
  return missing;
}

/** Searches like Node: next to the dependent, then upwards. */
function isLocked(packages: Lockfile['packages'], path: string, name: string): boolean {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    if (packages[at === '' ? `node_modules/${name}` : `${at}/node_modules/${name}`]) return true;
    if (at === '') return false;
  }
}

/** Derived from the name, e.g. `core-linux-arm64-musl`. */
function systemOf(name: string): Pick<LockedPackage, 'os' | 'cpu' | 'libc'> {
  const words = (name.split('/').at(-1) ?? '').split('-');
  const os = SYSTEMS.filter((system) => words.includes(system));
  const cpu = PROCESSORS.filter((processor) => words.includes(processor));
  const libc = words.some((word) => word.startsWith('musl')) ? ['musl'] : ['glibc'];
  return { cpu, ...(os.includes('linux') ? { libc } : {}), os };
}

if (import.meta.main) {
  const lockfile = readLockfile();
  const missing = missingPackages(lockfile);
  Object.assign(lockfile.packages, missing);
  const paths = Object.entries(lockfile.packages).toSorted(([a], [b]) => a.localeCompare(b, 'en'));
  writeFileSync(
    LOCKFILE,
    `${JSON.stringify({ ...lockfile, packages: Object.fromEntries(paths) }, null, 2)}\n`,
  );
  console.log(`${Object.keys(missing).length} packages added to package-lock.json`);
}
