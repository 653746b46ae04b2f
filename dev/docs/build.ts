import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { FINGERPRINT_FILE, SITE_FOLDER } from '../../api/docs/site-files.ts';

const ROOT = join(import.meta.dirname, '../..');
/** What the site is made from: the guides, this folder, the schemas of the routes, and the versions of packages. */
const SOURCES = [
  'docs/**/*',
  'CHANGELOG.md',
  'package-lock.json',
  '{api,dev/docs,dev/openapi,domain,platform}/**/*.*',
];

/**
 * Builds the site of the documents into the folder that the API serves, unless it is up to date.
 *
 * @returns whether it was built.
 */
export async function buildDocuments(folder = SITE_FOLDER): Promise<boolean> {
  const fingerprint = fingerprintSources();
  if (readFingerprint(folder) === fingerprint) return false;
  // Loading the whole API takes a second, which an up-to-date site does not need.
  const { readOpenApiDocuments } = await import('../openapi/documents.ts');
  const { buildSite } = await import('./site.ts');
  const documents = await readOpenApiDocuments(['/openapi.json']);
  const site = buildSite(JSON.parse(documents.get('/openapi.json') ?? ''));
  const temporary = `${folder}.${process.pid}`;
  for (const [path, content] of [...site, [FINGERPRINT_FILE, fingerprint] as const]) {
    const file = join(temporary, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  const former = `${temporary}.former`;
  try {
    renameSync(folder, former);
  } catch {
    // There was none.
  }
  renameSync(temporary, folder);
  rmSync(former, { recursive: true, force: true });
  return true;
}

function fingerprintSources(): string {
  const hash = createHash('sha256');
  const files = globSync(SOURCES, { cwd: ROOT, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  for (const file of files) hash.update(file).update(readFileSync(file));
  return hash.digest('hex');
}

/** Of the site in the folder; undefined without one. */
function readFingerprint(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, FINGERPRINT_FILE), 'utf8');
  } catch {
    return undefined;
  }
}

if (process.argv[1] === import.meta.filename) {
  const started = Date.now();
  const isBuilt = await buildDocuments();
  process.stdout.write(
    isBuilt ? `Built the documents in ${Date.now() - started} ms\n` : 'The documents are up to date\n',
  );
  process.exit(0);
}
