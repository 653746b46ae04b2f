import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { InstallationError } from '../../platform/installation/installation-error.ts';
import { requireObjects, restoreObjects, saveObjects } from '../../workers/backup/objects.ts';

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
  await expect(requireObjects(missing, null)).rejects.toThrow(InstallationError);
  await expect(restoreObjects(bucket, missing, unused)).rejects.toThrow(
    'The folder of objects cannot be read',
  );
});

test('a folder that lacks objects of the backup stops it, too, and one that has more does not', async () => {
  const folder = mkdtempSync(join(directory, 'partial-'));
  writeFileSync(join(folder, 'one'), '1');
  writeFileSync(join(folder, 'two.part'), '2');
  await expect(requireObjects(folder, 2)).rejects.toThrow('has 1 of the 2 objects of the backup');
  await requireObjects(folder, 1);
  await requireObjects(folder, 0);
});

test('a bucket that lacks objects is announced once, before the first is copied', async () => {
  const folder = mkdtempSync(join(directory, 'lacking-'));
  for (let file = 0; file < 20; file += 1) writeFileSync(join(folder, `${file}`), 'x');
  const calls: string[] = [];
  const bucket = {
    putStream: async (key: string) => {
      calls.push(key);
    },
    sizeOf: async (key: string) => (key === '7' ? 1 : undefined),
    ensureBucket: async () => undefined,
  };
  const onMissing = async () => {
    calls.push('missing');
  };
  const copied = await restoreObjects(bucket as never, folder, onMissing);
  expect(copied).toEqual({ copied: 19, unchanged: 1 });
  expect(calls[0]).toBe('missing');
  expect(calls.filter((call) => call === 'missing')).toHaveLength(1);
});

test('the backup of an empty bucket can be restored', async () => {
  const folder = join(directory, 'empty');
  await expect(saveObjects(emptyBucket, folder)).resolves.toEqual({ copied: 0, unchanged: 0 });
  expect(readdirSync(folder)).toEqual([]);
  const bucket = { putStream: unused, sizeOf: unused, ensureBucket: async () => undefined };
  await expect(restoreObjects(bucket, folder, unused)).resolves.toEqual({ copied: 0, unchanged: 0 });
});
