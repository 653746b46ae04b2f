import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClientBase } from 'pg';
import { InstallationError } from '../../platform/installation/installation-error.ts';
import { listMigrations } from '../../platform/installation/schema-version.ts';

export const MANIFEST_FILE = 'manifest.json';
export const DUMP_FILE = 'database.dump';
export const OBJECTS_FOLDER = 'objects';

/** What a backup contains besides the dump: roles belong to the cluster, and `pg_dump` does not save them. */
export interface Manifest {
  format: 2;
  /** The dump has everything that was committed before. */
  createdAt: string;
  /** Names of the roles that policies and grants refer to; logins are created by the migration command. */
  roles: string[];
  /** The API's role switches to some roles, and does not inherit what they may see. */
  memberships: { role: string; member: string; inherits: boolean }[];
  /** Functions that run with the rights of one of these roles, by signature. */
  functionOwners: Record<string, string>;
  /** Names of the applied migrations. */
  migrations: string[];
  contents: Contents;
  /** Objects in the bucket at the end of the backup; null if it left them out. */
  objects: number | null;
}

/** Compared after a restore. */
export interface Contents {
  tables: number;
  policies: number;
  securedTables: number;
  functions: number;
  triggers: number;
  migrations: number;
  organizations: number;
  messages: number;
}

/** Reads the cluster's part of a backup. */
export async function readManifest(client: ClientBase, createdAt: Date): Promise<Omit<Manifest, 'objects'>> {
  const roles = await client.query<{ role: string }>(
    `select rolname as role from pg_roles where rolname like 'agent\\_email\\_%' and not rolcanlogin order by 1`,
  );
  const names = roles.rows.map(({ role }) => role);
  const memberships = await client.query<Manifest['memberships'][number]>(
    `select r.rolname as role, m.rolname as member, bool_or(a.inherit_option) as inherits from pg_auth_members a
       join pg_roles r on r.oid = a.roleid join pg_roles m on m.oid = a.member
     where r.rolname = any ($1) and m.rolname = any ($1) group by 1, 2 order by 1, 2`,
    [names],
  );
  const owners = await client.query<{ signature: string; owner: string }>(
    `select p.oid::regprocedure::text as signature, r.rolname as owner from pg_proc p join pg_roles r on r.oid = p.proowner
     where p.pronamespace = 'public'::regnamespace and r.rolname = any ($1) order by 1`,
    [names],
  );
  const migrations = await client.query<{ name: string }>(
    'select name from mikro_orm_migrations order by name',
  );
  return {
    format: 2,
    createdAt: createdAt.toISOString(),
    roles: names,
    memberships: memberships.rows,
    functionOwners: Object.fromEntries(owners.rows.map(({ signature, owner }) => [signature, owner])),
    migrations: migrations.rows.map(({ name }) => name),
    contents: await countContents(client),
  };
}

export async function countContents(client: ClientBase): Promise<Contents> {
  const { rows } = await client.query<Contents>(
    `select
       (select count(*) from pg_tables where schemaname = 'public')::int as tables,
       (select count(*) from pg_policies where schemaname = 'public')::int as policies,
       (select count(*) from pg_tables where schemaname = 'public' and rowsecurity)::int as "securedTables",
       (select count(*) from pg_proc where pronamespace = 'public'::regnamespace)::int as functions,
       (select count(*) from pg_trigger where not tgisinternal)::int as triggers,
       (select count(*) from mikro_orm_migrations)::int as migrations,
       (select count(*) from organizations)::int as organizations,
       (select count(*) from messages)::int as messages`,
  );
  if (!rows[0]) throw new Error('The contents could not be counted');
  return rows[0];
}

/** @throws InstallationError if the folder is no complete backup, or is one of another version. */
export async function loadManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, MANIFEST_FILE), 'utf8').catch(() => {
    throw new InstallationError(
      `${folder} has no ${MANIFEST_FILE}: it is no backup, or the backup was interrupted`,
    );
  });
  const manifest = JSON.parse(text) as Manifest;
  const known = new Set(listMigrations());
  if (manifest.format !== 2 || manifest.migrations.some((name) => !known.has(name)))
    throw new InstallationError(
      `${folder} was written by another version of the service. Restore it with that version, or start without it: "npm start -- --reset" begins with an empty database.`,
    );
  return manifest;
}
