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

/** Uses small parts and chunks, so that a small organization has many, and checks in with each chunk. */
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
    checkIntervalMs: 0,
    retryDelayMs: 10,
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

/** Writes the whole export. */
export async function runExport(runner: ExportRunner, exportId: string): Promise<void> {
  const { status, progress } = await runner.write(exportId);
  if (status !== 'ready') throw new Error(`The export is ${status}: ${progress}`);
}

/** A runner whose worker is gone after some parts: `write` rejects, and nothing is cleaned up, as after `kill -9`. */
export function createCrashingRunner(
  app: TestApp,
  { afterParts, ...options }: Partial<ExportRunnerOptions> & { afterParts: number },
): ExportRunner {
  const { multipartUploads, ...storage } = app.storage;
  let parts = 0;
  return createTestExportRunner(app, {
    storage: {
      ...storage,
      multipartUploads: {
        ...multipartUploads,
        async uploadPart(...call) {
          if (parts === afterParts) throw new Error('The worker is gone');
          parts += 1;
          return multipartUploads.uploadPart(...call);
        },
        abort: () => Promise.reject(new Error('The worker is gone')),
      },
    },
    ...options,
  });
}

export async function readExportRow(exportId: string): Promise<Record<string, unknown>> {
  return asSchemaOwner(
    async (client) => (await client.query('select * from exports where id = $1', [exportId])).rows[0],
  );
}
