import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../../dev/stack/ports.ts';

/** Starts an S3 server for one test file. */
export async function startObjectStorage(): Promise<{
  /** Settings of a service that uses it. */
  environment: Record<string, string>;
  stop(): Promise<void>;
}> {
  const directory = mkdtempSync(join(tmpdir(), 'agent-email-objects-'));
  // Loaded by the files that need it only: the server and its logger take half a second.
  const { startS3 } = await import('../../dev/stack/s3.ts');
  const server = await startS3({ directory, port: await findFreePort(), bucket: 'agent-email' });
  return {
    environment: { ...server.environment },
    async stop() {
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
