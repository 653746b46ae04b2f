import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { startChild } from '../../dev/stack/child-process.ts';
import { acceptsConnections } from '../../dev/stack/ports.ts';
import type { S3Options, S3Server } from '../../dev/stack/s3.ts';
import { waitUntil } from '../../dev/stack/wait.ts';

/** Where `.ci/run` installs it: the S3 gateway of docker-compose.yml. */
const INSTALLED = join(homedir(), '.cache', 'agent-email', 'versitygw-1.8.0', 'versitygw');

/** Path of the gateway: `VERSITYGW`, PATH, or what `.ci/run` installed. Undefined if there is none. */
export function findVersitygw(): string | undefined {
  if (process.env.VERSITYGW) return process.env.VERSITYGW;
  if (!spawnSync('versitygw', ['--version']).error) return 'versitygw';
  return existsSync(INSTALLED) ? INSTALLED : undefined;
}

/** Starts the gateway on 127.0.0.1, which keeps its objects in `directory`. */
export async function startVersitygw(
  executable: string,
  { directory, port, bucket }: S3Options,
): Promise<S3Server> {
  const objects = join(directory, 'objects');
  const metadata = join(directory, 'metadata');
  mkdirSync(join(objects, bucket), { recursive: true });
  mkdirSync(join(metadata, bucket), { recursive: true });
  const credentials = { S3_ACCESS_KEY_ID: 'gateway-test', S3_SECRET_ACCESS_KEY: 'gateway-test-secret' };
  const child = await startChild({
    name: 'versitygw',
    command: executable,
    // Not every file system for temporary files has extended attributes.
    args: ['--port', `127.0.0.1:${port}`, 'posix', '--sidecar', metadata, objects],
    logFile: join(directory, 'versitygw.log'),
    env: {
      PATH: '/usr/bin:/bin',
      HOME: dirname(directory),
      ROOT_ACCESS_KEY: credentials.S3_ACCESS_KEY_ID,
      ROOT_SECRET_KEY: credentials.S3_SECRET_ACCESS_KEY,
    },
  });
  await waitUntil(
    async () => {
      if (!(await acceptsConnections(port))) throw new Error('not listening yet');
    },
    { what: 'versitygw', timeoutMs: 20_000, failed: child.failure },
  );
  return {
    environment: {
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_BUCKET: bucket,
      S3_REGION: 'us-east-1',
      ...credentials,
    },
    stop: () => child.stop(),
  };
}
