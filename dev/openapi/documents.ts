import { resolve } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { buildApp } from '../../api/app.ts';
import { createServices } from '../../api/services.ts';
import { createFileReader } from '../../domain/attachments/text/file-reader.ts';
import { createHtmlConverter } from '../../domain/mime/converter/pool.ts';
import { loadConfig } from '../../platform/config.ts';
import { createDatabase } from '../../platform/database/database.ts';
import { createDependencies } from '../../platform/dependencies.ts';
import { createSesObjects } from '../../platform/ses-objects.ts';
import { createStorage } from '../../platform/storage.ts';

/** Any 32 bytes: nothing is encrypted or signed. */
const ANY_KEY = Buffer.alloc(32).toString('base64');

/** Builds the API without a server of any kind: the OpenAPI documents follow from its routes alone. */
async function buildUnconnectedApp(): Promise<FastifyInstance> {
  const config = loadConfig({
    NODE_ENV: 'test',
    DATABASE_URL: 'postgres://nothing@127.0.0.1:1/nothing',
    ENCRYPTION_KEY: ANY_KEY,
    SIGNING_KEY: ANY_KEY,
    MAIL_DOMAIN: 'mail.example',
  });
  const logger = pino({ level: 'silent' });
  const database = createDatabase({ url: config.DATABASE_URL, poolSize: 1 });
  const unavailable = () => Promise.reject(new Error('this API is not connected'));
  return buildApp({
    config,
    logger,
    database,
    dependencies: createDependencies({
      probes: { database: unavailable, temporal: unavailable, storage: unavailable },
      logger,
    }),
    queueAges: { read: unavailable },
    services: createServices({
      temporalRuns: {} as never,
      schedules: { list: unavailable, find: unavailable },
      config,
      database,
      outbox: { enqueue: () => undefined, sweep: unavailable, drain: async () => undefined },
      storage: createStorage(config),
      sesObjects: createSesObjects(config),
      converter: createHtmlConverter({
        entry: resolve(import.meta.dirname, '../../workers/html-converter.ts'),
        processes: 1,
      }),
      fileReader: createFileReader({
        entry: resolve(import.meta.dirname, '../../workers/file-reader.ts'),
      }),
      logger,
    }),
  });
}

/** The bodies of the API's OpenAPI documents, by their paths. */
export async function readOpenApiDocuments(paths: readonly string[]): Promise<Map<string, string>> {
  const app = await buildUnconnectedApp();
  const bodies = new Map<string, string>();
  for (const path of paths) bodies.set(path, (await app.inject(path)).body);
  return bodies;
}
