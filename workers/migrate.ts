import { parseArgs } from 'node:util';
import { MikroORM } from '@mikro-orm/postgresql';
import pg from 'pg';
import { entities } from '../domain/entities.ts';
import { loadConfig } from '../platform/config.ts';
import { ormOptions } from '../platform/database/orm-options.ts';
import { API_ROLE, WORKER_ROLE } from '../platform/database/policies.ts';
import { recordCluster } from '../platform/installation/cluster.ts';
import { InstallationError } from '../platform/installation/installation-error.ts';
import { RESTORE_PENDING_DETAIL } from '../platform/installation/pending-restore.ts';
import { listMigrations } from '../platform/installation/schema-version.ts';

// Key of the advisory lock that serializes concurrent migrations. It must be the same in every release.
const MIGRATION_LOCK = 7_236_501_118;

export interface MigrateOptions {
  /** Owner of the schema: may create tables, roles and logins. */
  migrationUrl: string;
  /** URLs with user and password; the logins are created or updated. */
  apiUrl?: string;
  workerUrl?: string;
}

export interface MigrateResult {
  /** Names of the migrations applied by this run, oldest first; empty if the schema was up to date. */
  applied: string[];
  /** The database was restored into another cluster; workers wait until it is reconciled. */
  isRestored: boolean;
}

/** The database was migrated by another version of the service; nothing was changed. */
export class UnknownMigrationsError extends Error {
  override name = 'UnknownMigrationsError';
  constructor(names: string[]) {
    super(
      `The database belongs to another version of the service: it has ${names.length} migration(s) that are unknown to this version (${names[0]}). Run the version that created it, or start with an empty database: "npm start -- --reset" deletes the data of the embedded one.`,
    );
  }
}

/**
 * Brings the schema up to date and creates or updates the logins of the API and of the workers. Safe to repeat and to run
 * concurrently. The migrations of one run commit together or not at all.
 *
 * @throws UnknownMigrationsError
 * @throws Error if the database is unreachable, a migration fails, or a login would bypass row-level security.
 */
export async function migrate(options: MigrateOptions): Promise<MigrateResult> {
  const owner = new URL(options.migrationUrl);
  const logins = [
    ...(options.apiUrl ? [readLogin('API_DATABASE_URL', options.apiUrl, API_ROLE)] : []),
    ...(options.workerUrl ? [readLogin('WORKER_DATABASE_URL', options.workerUrl, WORKER_ROLE)] : []),
  ];
  assertSeparateLogins(decodeURIComponent(owner.username), logins);

  const client = new pg.Client({
    connectionString: options.migrationUrl,
    application_name: 'agent-email migrate',
  });
  await client.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await assertKnownMigrations(client);
    const applied = await runMigrations(options.migrationUrl);
    for (const login of logins) await ensureLogin(client, login);
    await client.query(RESET_FOREIGN_TRANSACTIONS);
    return { applied, isRestored: await recordCluster(client) };
  } finally {
    // Closing the session releases the lock, even after an error.
    await client.end();
  }
}

/**
 * After a restore into another cluster, events may have transaction ids that this cluster has not reached yet. The feed
 * would hide them until then, and order them after new events. This makes them the oldest events: 3 is the first
 * transaction id that a cluster assigns.
 */
const RESET_FOREIGN_TRANSACTIONS = `update events set transaction_id = '3'
  where transaction_id >= pg_snapshot_xmax(pg_current_snapshot())`;

async function assertKnownMigrations(client: pg.Client): Promise<void> {
  const { rows: found } = await client.query(
    `select to_regclass('mikro_orm_migrations') is not null as exists`,
  );
  if (!found[0]?.exists) return;
  const { rows } = await client.query<{ name: string }>(
    'select name from mikro_orm_migrations order by name',
  );
  const known = new Set(listMigrations());
  const unknown = rows.map(({ name }) => name).filter((name) => !known.has(name));
  if (unknown.length > 0) throw new UnknownMigrationsError(unknown);
}

async function runMigrations(url: string): Promise<string[]> {
  const base = ormOptions({ url, entities });
  const orm = await MikroORM.init({ ...base, migrations: { ...base.migrations, silent: true } });
  try {
    return (await orm.migrator.up()).map(({ name }) => name);
  } finally {
    await orm.close(true);
  }
}

interface Login {
  variable: string;
  user: string;
  password: string;
  role: string;
}

function readLogin(variable: string, url: string, role: string): Login {
  const { username, password } = new URL(url);
  if (username === '' || password === '') throw new Error(`${variable} needs a user and a password`);
  return { variable, user: decodeURIComponent(username), password: decodeURIComponent(password), role };
}

/** The API must use neither the owner, to whom policies do not apply, nor the workers' login, which sees every tenant. */
function assertSeparateLogins(owner: string, logins: Login[]): void {
  const taken = new Map([[owner, 'MIGRATION_DATABASE_URL']]);
  for (const { variable, user } of logins) {
    const other = taken.get(user);
    if (other) throw new Error(`${variable} must not use the same user as ${other} (${user})`);
    taken.set(user, variable);
  }
}

async function ensureLogin(client: pg.Client, { variable, user, password, role }: Login): Promise<void> {
  const name = pg.escapeIdentifier(user);
  const found = await client.query<{ rolsuper: boolean; rolbypassrls: boolean }>(
    'select rolsuper, rolbypassrls from pg_roles where rolname = $1',
    [user],
  );
  const existing = found.rows[0];
  if (existing?.rolsuper || existing?.rolbypassrls)
    throw new Error(`The user of ${variable} (${user}) bypasses row-level security; use another one`);
  // PostgreSQL does not support parameters in these statements.
  const verb = existing ? 'alter' : 'create';
  await client.query(`${verb} role ${name} login inherit password ${pg.escapeLiteral(password)}`);
  await client.query(`grant ${pg.escapeIdentifier(role)} to ${name}`);
  await client.query(`grant connect on database ${pg.escapeIdentifier(client.database ?? '')} to ${name}`);
}

/**
 * Removes a login that the service no longer uses. Its open connections end with it.
 *
 * @throws Error if it is none of the service's logins, or configured.
 */
export async function dropLogin(options: MigrateOptions, user: string): Promise<void> {
  const configured = [options.migrationUrl, options.apiUrl, options.workerUrl].flatMap((url) =>
    url ? [decodeURIComponent(new URL(url).username)] : [],
  );
  if (configured.includes(user)) throw new Error(`The login ${user} is configured, so it is in use`);
  const client = new pg.Client({ connectionString: options.migrationUrl });
  await client.connect();
  try {
    const { rows } = await client.query(
      `select from pg_auth_members m join pg_roles r on r.oid = m.member
       where r.rolname = $1 and r.rolcanlogin and m.roleid::regrole::text = any ($2)`,
      [user, [API_ROLE, WORKER_ROLE]],
    );
    if (rows.length === 0) throw new Error(`${user} is not a login of this service`);
    const name = pg.escapeIdentifier(user);
    await client.query(`drop owned by ${name}; drop role ${name}`);
    await client.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [user]);
  } finally {
    await client.end();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { 'drop-login': { type: 'string' } } });
  const config = loadConfig();
  if (!config.MIGRATION_DATABASE_URL)
    throw new InstallationError('MIGRATION_DATABASE_URL is required: it has the login of the schema owner');
  const options = {
    migrationUrl: config.MIGRATION_DATABASE_URL,
    apiUrl: config.API_DATABASE_URL,
    workerUrl: config.WORKER_DATABASE_URL,
  };
  const { applied, isRestored } = await migrate(options);
  const summary = applied.length === 0 ? 'The schema is up to date' : `Applied ${applied.join(', ')}`;
  process.stdout.write(`${summary}\n`);
  if (values['drop-login']) {
    await dropLogin(options, values['drop-login']);
    process.stdout.write(`Removed the login ${values['drop-login']}\n`);
  }
  if (isRestored) process.stdout.write(`${RESTORE_PENDING_DETAIL}\n`);
}

function describeFailure(error: unknown): string {
  if (error instanceof UnknownMigrationsError || error instanceof InstallationError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    process.stderr.write(`Migration failed: ${describeFailure(error)}\n`);
    process.exitCode = 1;
  });
}
