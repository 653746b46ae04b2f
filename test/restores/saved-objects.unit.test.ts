import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { InstallationError } from '../../platform/installation/installation-error.ts';
import { requireFolder, restoreObjects, saveObjects } from '../../workers/backup/objects.ts';

const directory = mkdtempSync(join(tmpdir(), 'saved-objects-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const unused = () => Promise.reject(new Error('unused'));
const emptyBucket = {
  listPage: async () => ({ objects: [], isLast: true }),
  getStream: unused,
  sizeOf: unused,
};

test('a missing folder of objects stops a restore before anything is written', async () => {
  const missing = join(directory, 'missing');
  const bucket = { putStream: unused, sizeOf: unused, ensureBucket: unused };
  await expect(requireFolder(missing)).rejects.toThrow(InstallationError);
  await expect(restoreObjects(bucket, missing)).rejects.toThrow('The folder of objects cannot be read');
});

test('the backup of an empty bucket can be restored', async () => {
  const folder = join(directory, 'empty');
  await expect(saveObjects(emptyBucket, folder)).resolves.toEqual({ copied: 0, unchanged: 0 });
  expect(readdirSync(folder)).toEqual([]);
  const bucket = { putStream: unused, sizeOf: unused, ensureBucket: async () => undefined };
  await expect(restoreObjects(bucket, folder)).resolves.toEqual({ copied: 0, unchanged: 0 });
});
