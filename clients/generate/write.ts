import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { printClients } from './files.ts';
import { readModel } from './model.ts';

/** `npm run generate:clients`: writes the generated parts of the SDKs, from the OpenAPI document of this repository. */
const ROOT = join(import.meta.dirname, '../..');
const files = Object.entries(printClients(await readModel()));
for (const [path, text] of files) {
  mkdirSync(dirname(join(ROOT, path)), { recursive: true });
  writeFileSync(join(ROOT, path), text);
}
console.log(`${files.length} files written`);
// The API that described itself keeps the process alive.
process.exit();
