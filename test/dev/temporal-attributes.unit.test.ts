import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import type { Connection } from '@temporalio/client';
import { findFreePort } from '../../dev/stack/ports.ts';
import { startTemporal } from '../../dev/stack/temporal.ts';
import { findTemporalCli } from '../../dev/stack/temporal-binaries.ts';
import { SEARCH_ATTRIBUTES } from '../../platform/temporal.ts';
import { connectToTemporal } from '../support/temporal-connection.ts';

const folder = mkdtempSync(join(tmpdir(), 'agent-email-temporal-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function withTemporal<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
  const cacheDir = resolve(import.meta.dirname, '../../.cache/temporal');
  const server = await startTemporal({
    executable: await findTemporalCli({ cacheDir, environment: process.env, log: () => undefined }),
    port: await findFreePort(),
    databaseFile: join(folder, 'temporal.db'),
    logFile: join(folder, 'temporal.log'),
  });
  const connection = await connectToTemporal(server.address);
  try {
    return await work(connection);
  } finally {
    await connection.close();
    await server.stop();
  }
}

test('a Temporal database of an earlier version gets the search attributes that are new', async () => {
  await withTemporal(({ operatorService }) =>
    operatorService.removeSearchAttributes({ namespace: 'default', searchAttributes: ['RequestId'] }),
  );
  const names = await withTemporal(async ({ operatorService }) => {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace: 'default' });
    return Object.keys(customAttributes ?? {});
  });
  expect(names).toEqual(expect.arrayContaining([...SEARCH_ATTRIBUTES]));
}, 180_000);
