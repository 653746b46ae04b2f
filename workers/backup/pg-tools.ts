import { spawn } from 'node:child_process';
import { programEnvironment } from '../../platform/config.ts';
import { InstallationError } from '../../platform/installation/installation-error.ts';

/** Runs `pg_dump` or `pg_restore`. The password is passed in the environment, because other users can read arguments. */
export async function runPgTool(
  tool: 'pg_dump' | 'pg_restore',
  url: string,
  args: readonly string[],
): Promise<void> {
  const child = spawn(tool, args, {
    env: { ...programEnvironment(), ...connectionEnvironment(url) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    // The end of the output names the failure.
    errors = `${errors}${chunk.toString('utf8')}`.slice(-MAX_ERROR_CHARACTERS);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new InstallationError(
      `${tool} is not on PATH. Install PostgreSQL's client programs, in the server's version or a newer one.`,
    );
  });
  if (code !== 0) throw new InstallationError(`${tool} failed: ${errors.trim()}`);
}

const MAX_ERROR_CHARACTERS = 4_000;

function connectionEnvironment(url: string): Record<string, string> {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  const sslMode = searchParams.get('sslmode');
  return {
    PGHOST: searchParams.get('host') ?? hostname,
    PGPORT: port || '5432',
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
    PGAPPNAME: 'agent-email backup',
    ...(sslMode ? { PGSSLMODE: sslMode } : {}),
  };
}
