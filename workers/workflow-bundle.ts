import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';

const ROOT = new URL('..', import.meta.url).pathname;
const CACHE_FOLDER = join(ROOT, '.cache');
const WORKFLOWS = join(ROOT, 'workflows', 'index.ts');
const INTERCEPTORS = join(ROOT, 'workflows', 'interceptors.ts');

/**
 * Bundles the workflow code. The bundle is cached on disk under a fingerprint of the sources, because bundling takes 1.5
 * seconds and 100 MB of memory. If the folder is not writable (a read-only image), nothing is cached.
 */
export async function loadWorkflowBundle(): Promise<{ code: string }> {
  const file = join(CACHE_FOLDER, `workflows-${await fingerprint()}.js`);
  const cached = await readFile(file, 'utf8').catch(() => null);
  if (cached !== null) return { code: cached };
  const { code } = await bundleWorkflowCode({
    workflowsPath: WORKFLOWS,
    workflowInterceptorModules: [INTERCEPTORS],
    // Otherwise each run evaluates the modules of all workflows again.
    preloadModules: [WORKFLOWS, INTERCEPTORS],
    logger: SILENT_LOGGER,
  });
  await writeCache(file, code).catch(() => undefined);
  return { code };
}

async function writeCache(file: string, code: string): Promise<void> {
  await mkdir(CACHE_FOLDER, { recursive: true });
  const temporary = `${file}.${process.pid}`;
  await writeFile(temporary, code);
  await rename(temporary, file);
}

async function fingerprint(): Promise<string> {
  const hash = createHash('sha256');
  const folder = join(ROOT, 'workflows');
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts')).sort();
  for (const name of names) hash.update(name).update(await readFile(join(folder, name)));
  for (const file of [join(ROOT, 'package-lock.json'), import.meta.filename])
    hash.update(await readFile(file));
  return hash.digest('hex').slice(0, 16);
}

const ignore = () => undefined;
const SILENT_LOGGER = {
  log: ignore,
  trace: ignore,
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
};
