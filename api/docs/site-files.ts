import { readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { AppError } from '../../platform/errors.ts';

/** Where `npm run build:docs` writes the site of the documents. The image has a copy. */
export const SITE_FOLDER = resolve(import.meta.dirname, '../../.cache/docs');

/** Stands for PUBLIC_URL in the built files. */
export const BASE_URL = 'https://public-url.invalid';

/** The files of the site by path, such as `webhooks.html` and `assets/docs.1a2b.css`. */
export type SiteFiles = ReadonlyMap<string, string | Buffer>;

const TEXT = /\.(?:html|md|txt|css|js|json|py|ts|go|yml|sh)$/;

/** Written last: it changes whenever the site does. */
export const FINGERPRINT_FILE = '.fingerprint';

/** A running service shows a site that was built again within this time. */
const CHECK_INTERVAL_MS = 1_000;

/** Reads the site at the first request, and again after it was built again. Returns the same files until then. */
export function createSiteReader(folder = SITE_FOLDER): () => Promise<SiteFiles> {
  let known: { version: number; files: SiteFiles } | undefined;
  let checkedAt = 0;
  return async () => {
    if (known && performance.now() - checkedAt < CHECK_INTERVAL_MS) return known.files;
    checkedAt = performance.now();
    const version = await versionOf(folder);
    // While a build replaces the folder there is none for a moment.
    if (known && (version === undefined || version === known.version)) return known.files;
    if (version === undefined) throw notBuilt();
    const files = await readSiteFiles(folder);
    known = { version, files };
    return files;
  };
}

async function versionOf(folder: string): Promise<number | undefined> {
  try {
    return (await stat(join(folder, FINGERPRINT_FILE))).mtimeMs;
  } catch {
    return undefined;
  }
}

const notBuilt = (): AppError =>
  new AppError('unavailable', {
    detail: 'The documents have not been built.',
    fix: 'If you operate the service, run: npm run build:docs. The operations are at /openapi.json.',
  });

async function readSiteFiles(folder: string): Promise<SiteFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && entry.name !== FINGERPRINT_FILE)
    .map((entry) => join(entry.parentPath, entry.name));
  const files = await Promise.all(
    paths.map(async (path) => {
      const content = await readFile(path);
      const name = path.slice(folder.length + 1);
      return [name, TEXT.test(name) ? content.toString('utf8') : content] as const;
    }),
  );
  return new Map(files);
}
