import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import {
  createExportRunner,
  type ExportRunner,
  type ExportRunnerOptions,
} from '../../domain/exports/export-runner.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { newId } from '../../platform/ids.ts';
import { useObjectStorage, useTestApp } from './resources.ts';
import { asSchemaOwner, type RichOrganization } from './rich-organization.ts';
import { recordingOutbox, type TestApp } from './test-app.ts';
import { useResource } from './use-resource.ts';

/** An API with its own object storage, and a folder for downloaded archives. */
export function useExportApp(): {
  app: TestApp;
  /** Path that an archive is downloaded to. */
  archivePath(exportId: string): string;
  /** @returns the path of the archive. */
  download(exportId: string): Promise<string>;
} {
  const objects = useObjectStorage();
  const app = useTestApp(() => ({ config: objects.environment }));
  const folder = useResource(
    async () => ({ path: await mkdtemp(join(tmpdir(), 'agent-email-exports-')) }),
    ({ path }) => rm(path, { recursive: true, force: true }),
  );
  const archivePath = (exportId: string) => join(folder.path, `${exportId}.zip`);
  return {
    app,
    archivePath,
    async download(exportId) {
      const path = archivePath(exportId);
      await pipeline(await app.storage.getStream(`exports/${exportId}.zip`), createWriteStream(path));
      return path;
    },
  };
}

/** Uses small parts and pieces, so that a small organization has many. */
export function createTestExportRunner(
  app: TestApp,
  options: Partial<ExportRunnerOptions> = {},
): ExportRunner {
  return createExportRunner({
    database: app.worker,
    storage: app.storage,
    notifications: createNotificationService({ outbox: recordingOutbox().outbox }),
    minPartBytes: 2_000,
    maxChunkBytes: 700,
    ...options,
  });
}

/** Creates an export like the API. Returns its id. */
export async function queueExport({
  organizationId,
  keyId,
}: Pick<RichOrganization, 'organizationId' | 'keyId'>): Promise<string> {
  const id = newId('export');
  await asSchemaOwner((client) =>
    client.query(
      `insert into exports (id, org_id, requested_by, storage_key, created_at, updated_at)
       values ($1, $2, $3, $4, now(), now())`,
      [id, organizationId, keyId, `exports/${id}.zip`],
    ),
  );
  return id;
}

const MAX_STEPS = 3_000;

/** Writes the whole export with one step per call, so that all state passes through the database. */
export async function runExport(runner: ExportRunner, exportId: string): Promise<void> {
  for (let calls = 0; calls < MAX_STEPS; calls += 1) {
    const { status, progress } = await runner.write(exportId, { deadlineMs: 0 });
    if (status === 'ready') return;
    if (status !== 'running') throw new Error(`The export is ${status}: ${progress}`);
  }
  throw new Error(`The export was not ready after ${MAX_STEPS} steps`);
}

export async function readExportRow(exportId: string): Promise<Record<string, unknown>> {
  return asSchemaOwner(
    async (client) => (await client.query('select * from exports where id = $1', [exportId])).rows[0],
  );
}
