import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Log } from '../stack/child-process.ts';

/**
 * Builds the site of the documents, unless it is up to date: in a process of its own, beside the start of the services. The service
 * also runs without it.
 */
export async function ensureDocuments(log: Log, signal: AbortSignal): Promise<void> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'build.ts')], {
      signal,
    });
    if (stdout.startsWith('Built')) log('Built the documents');
  } catch (error) {
    const { stderr = String(error) } = error as { stderr?: string };
    if (!signal.aborted) log(`The documents could not be built, so that /docs is unavailable: ${stderr}`);
  }
}
