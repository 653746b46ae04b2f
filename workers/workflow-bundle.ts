import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';

const ROOT = new URL('..', import.meta.url).pathname;
const CACHE = join(ROOT, '.cache');

/**
 * The workflows' code as one bundle, kept between starts under a name that follows from the sources: bundling takes a
 * second and a half and a hundred megabytes. Where the folder cannot be written (a read-only image without a prebuilt
 * bundle) the bundle is made in memory.
 */
export async function loadWorkflowBundle(): Promise<{ code: string }> {
  const file = join(CACHE, `workflows-${await fingerprint()}.js`);
  const kept = await readFile(file, 'utf8').catch(() => null);
  if (kept !== null) return { code: kept };
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(ROOT, 'workflows', 'index.ts'),
    logger: silent,
  });
  await keep(file, code).catch(() => undefined);
  return { code };
}

async function keep(file: string, code: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, code);
  await rename(draft, file);
}

async function fingerprint(): Promise<string> {
  const hash = createHash('sha256');
  const folder = join(ROOT, 'workflows');
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts')).sort();
  for (const name of names) hash.update(name).update(await readFile(join(folder, name)));
  hash.update(await readFile(join(ROOT, 'package-lock.json')));
  return hash.digest('hex').slice(0, 16);
}

const quiet = () => undefined;
const silent = { log: quiet, trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };
