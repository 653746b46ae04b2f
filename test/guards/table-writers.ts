import { readFileSync } from 'node:fs';

export interface TableWrite {
  file: string;
  table: string;
}

export interface Tables {
  /** Path of the entity file by table. */
  definedIn: ReadonlyMap<string, string>;
}

const ENTITY = /export const \w+Entity = defineEntity\(\{[\s\S]*?tableName: '(\w+)'/g;
const STATEMENT = /\b(?:insert\s+into|update|delete\s+from)\s+(?:only\s+)?"?(\w+)"?/gi;
const TYPED_CALL = /\.(?:insertInto|updateTable|deleteFrom|mergeInto)\(\s*'(\w+)/g;

export function readTables(files: readonly string[], read = readSource): Tables {
  const definedIn = new Map<string, string>();
  for (const file of files.filter((path) => path.endsWith('.entity.ts')))
    for (const [, table = ''] of read(file).matchAll(ENTITY)) definedIn.set(table, file);
  return { definedIn };
}

/** Finds the tables that a file writes, in SQL or in calls that name the table. */
export function findTableWrites(file: string, tables: Tables, read = readSource): TableWrite[] {
  const source = read(file);
  const bySql = [...source.matchAll(STATEMENT)].map(([, name = '']) => name);
  const byTypedCall = [...source.matchAll(TYPED_CALL)].map(([, name = '']) => name);
  const written = new Set([...bySql, ...byTypedCall].filter((table) => tables.definedIn.has(table)));
  return [...written].sort().map((table) => ({ file, table }));
}

/** Whether a statement writes to a table whose name is in a variable. */
export function hasDynamicTable(file: string, read = readSource): boolean {
  const source = read(file);
  return (
    /\b(?:insert\s+into|update|delete\s+from)\s+\$\{/i.test(source) ||
    /\.(?:insertInto|updateTable|deleteFrom|mergeInto)\(\s*[^'\s]/.test(source)
  );
}

/** The folder that owns a file: a room of `domain/`, a folder of `platform/`, or a top-level folder. */
export function ownerOf(path: string): string {
  const [folder = '', part = ''] = path.split('/');
  return folder === 'domain' || folder === 'platform' ? `${folder}/${part}` : folder;
}

function readSource(file: string): string {
  return readFileSync(file, 'utf8');
}
