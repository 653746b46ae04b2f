import { readdirSync, readFileSync } from 'node:fs';

const FOLDER = new URL('../../migrations/functions/', import.meta.url);

/** Names of the SQL functions in `migrations/functions`, one file each. */
export function listSqlFunctions(): string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}

/** Reads the current `create or replace function` statement of a function. */
export function readSqlFunction(name: string): string {
  return readFileSync(new URL(`${name}.sql`, FOLDER), 'utf8');
}

/**
 * Returns the statements with which a migration creates or changes a function. Bodies are not checked: on an empty
 * database, an early migration runs the current text, which may use columns that later migrations add. If arguments or
 * results change, the migration first drops the old function: `drop function if exists search_words(text)`.
 */
export function replaceSqlFunction(name: string): string {
  return `set local check_function_bodies = off;\n${readSqlFunction(name)}`;
}
