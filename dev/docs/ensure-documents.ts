import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { FINGERPRINT_FILE, SITE_FOLDER } from '../../api/docs/site-files.ts';
import type { Log } from '../stack/child-process.ts';

/**
 * Builds the site of the documents, unless it is up to date: in a process of its own, which gives way to the services that start. Resolves
 * when there is a site. An older one is shown until the new one is built. The service also runs without it.
 */
export async function ensureDocuments(log: Log, signal: AbortSignal): Promise<void> {
  const building = build(log, signal);
  if (!existsSync(join(SITE_FOLDER, FINGERPRINT_FILE))) await building;
}

async function build(log: Log, signal: AbortSignal): Promise<void> {
  try {
    const running = promisify(execFile)(process.execPath, [join(import.meta.dirname, 'build.ts')], {
      signal,
    });
    if (running.child.pid) setPriority(running.child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
    const { stdout } = await running;
    if (stdout.startsWith('Built')) log('Built the documents');
  } catch (error) {
    const { stderr = String(error) } = error as { stderr?: string };
    if (!signal.aborted) log(`The documents could not be built: ${stderr}`);
  }
}
