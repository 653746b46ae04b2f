import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { AppError } from '../../platform/errors.ts';

/** Where `npm run build:docs` writes the site of the documents. The image has a copy. */
export const SITE_FOLDER = resolve(import.meta.dirname, '../../.cache/docs');

/** Stands for PUBLIC_URL in the built files. */
export const BASE_URL = 'https://public-url.invalid';

/** The files of the site by path, such as `webhooks.html` and `assets/docs.1a2b.css`. */
export type SiteFiles = ReadonlyMap<string, string | Buffer>;

const TEXT = /\.(?:html|md|txt|css|js|json|py|ts|go|yml|sh)$/;

/** @throws AppError `unavailable` if the site was not built. */
export async function readSiteFiles(folder = SITE_FOLDER): Promise<SiteFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => {
    throw new AppError('unavailable', {
      detail: 'The documents have not been built.',
      fix: 'If you operate the service, run: npm run build:docs. The operations are at /openapi.json.',
    });
  });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const files = await Promise.all(
    paths.map(async (path) => {
      const content = await readFile(path);
      const name = path.slice(folder.length + 1);
      return [name, TEXT.test(name) ? content.toString('utf8') : content] as const;
    }),
  );
  return new Map(files);
}
