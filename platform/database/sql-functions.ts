import { readdirSync, readFileSync } from 'node:fs';

const FOLDER = new URL('../../migrations/functions/', import.meta.url);

/** Names of the SQL functions in `migrations/functions`, one file each. */
export function listSqlFunctions(): string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}

/** The current `create or replace function` of a function. */
export function readSqlFunction(name: string): string {
  return readFileSync(new URL(`${name}.sql`, FOLDER), 'utf8');
}

/**
 * The statements with which a migration creates or changes a function. Bodies are not checked: on an empty database an
 * early migration runs today's text, which may name columns of later ones. If arguments or results change, the migration
 * first drops the old function: `drop function if exists search_words(text)`.
 */
export function replaceSqlFunction(name: string): string {
  return `set local check_function_bodies = off;\n${readSqlFunction(name)}`;
}
