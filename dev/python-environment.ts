import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
/** The Python client. */
export const PYTHON_CLIENT = join(ROOT, 'clients/python');
/** For all clones of the repository: what takes a minute to install is installed once. */
const CACHE = join(homedir(), '.cache/agent-email');
/** Of mypy, which otherwise reads all packages again. */
export const MYPY_CACHE = join(CACHE, 'python-mypy');
const REQUIREMENTS = join(PYTHON_CLIENT, 'requirements-test.txt');
const IS_NEW_ENOUGH = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))';

/** A Python that the client runs with, or null: at least 3.10, with the modules that a virtual environment needs. */
export function findPython(): string | null {
  const names = ['python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10'];
  const works = (name: string): boolean => {
    try {
      execFileSync(name, ['-c', IS_NEW_ENOUGH], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  };
  return names.find(works) ?? null;
}

/**
 * The Python of a virtual environment in ~/.cache/agent-email that has what the tests and builds of the client need, in the
 * versions of requirements-test.txt. Takes a minute the first time.
 *
 * @throws Error if the packages cannot be installed.
 */
export async function preparePython(python: string): Promise<string> {
  const version = execFileSync(python, ['--version'], { encoding: 'utf8' });
  const wanted = createHash('sha256').update(readFileSync(REQUIREMENTS)).update(version).digest('hex');
  const folder = join(CACHE, `python-${wanted.slice(0, 16)}`);
  const program = join(folder, 'bin/python');
  if (existsSync(program)) return program;
  await mkdir(CACHE, { recursive: true });
  // Test files run side by side: each makes its own, and the first one stays. `python -m` works in a moved environment.
  const own = `${folder}.${process.pid}`;
  try {
    const run = (file: string, args: string[]) => promisify(execFile)(file, args, { maxBuffer: 16_777_216 });
    await run(python, ['-m', 'venv', own]);
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps'];
    await run(join(own, 'bin/python'), [...pip, '-r', REQUIREMENTS]);
    await rename(own, folder).catch((error: unknown) => {
      if (!existsSync(program)) throw error;
    });
  } finally {
    await rm(own, { recursive: true, force: true });
  }
  return program;
}

if (import.meta.main) {
  const python = findPython();
  if (python === null) throw new Error('There is no Python 3.10 or newer with venv.');
  console.log(await preparePython(python));
}
