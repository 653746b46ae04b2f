import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  addChunk,
  buildDirectoryHeader,
  buildEndRecords,
  buildLocalHeader,
  closeEntry,
  completeEntry,
  openEntry,
  type ZipEntry,
} from '../../platform/zip.ts';
import { readZip } from '../support/zip-reader.ts';

const folder = mkdtempSync(join(tmpdir(), 'agent-email-zip-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const modifiedAt = Date.UTC(2026, 10, 21, 10, 20, 30);

interface Source {
  name: string;
  /** Several chunks are written as a streamed entry. */
  pieces: Buffer[];
  zip64?: boolean;
}

/** Writes an archive like an export does: serializes the state between two chunks. */
async function write(path: string, sources: Source[]): Promise<void> {
  const archive: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  const append = (...bytes: Buffer[]) => {
    archive.push(...bytes);
    for (const { length } of bytes) offset += length;
  };
  for (const { name, pieces, zip64 = false } of sources) {
    const [only] = pieces;
    if (only && pieces.length === 1) {
      const record = await completeEntry({ name, modifiedAt, offset }, only);
      append(...record.bytes);
      directory.push(record.directoryRecord);
      continue;
    }
    const opened = openEntry({ name, modifiedAt, offset, zip64 });
    append(opened.bytes);
    let { entry } = opened;
    for (const piece of pieces) {
      const added = await addChunk(JSON.parse(JSON.stringify(entry)) as ZipEntry, piece);
      entry = added.entry;
      append(...added.bytes);
    }
    const record = closeEntry(entry);
    append(...record.bytes);
    directory.push(record.directoryRecord);
  }
  const begin = offset;
  for (const header of directory) append(header);
  append(buildEndRecords({ entries: sources.length, offset: begin, sizeBytes: offset - begin }));
  writeFileSync(path, Buffer.concat(archive));
}

const isInstalled = (program: string, argument: string) => spawnSync(program, [argument]).status === 0;
/** Skips a test if its program is missing. `.ci/run` prints skipped tests. */
const testIf = (present: boolean) => (present ? test : test.skip);
const testPython = testIf(isInstalled('python3', '--version'));
const testUnzip = testIf(isInstalled('unzip', '-v'));

/** Reads names, sizes, CRC-32 and times with Python. */
function readWithPython(path: string): { name: string; size: number; crc: number; time: number[] }[] {
  const script = `import json, sys, zipfile, zlib
with zipfile.ZipFile(sys.argv[1]) as z:
    assert z.testzip() is None
    print(json.dumps([dict(name=i.filename, size=i.file_size, crc=zlib.crc32(z.read(i)), time=i.date_time) for i in z.infolist()]))`;
  const { stdout, stderr, status } = spawnSync('python3', ['-c', script, path], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout);
}

const MIXED: Source[] = [
  { name: 'empty', pieces: [Buffer.alloc(0)] },
  { name: 'empty.jsonl', pieces: [] },
  { name: 'text.txt', pieces: [Buffer.from('Grüße '.repeat(1_000))] },
  { name: 'random.bin', pieces: [randomBytes(100_000)] },
  { name: 'in/pieces.jsonl', pieces: Array.from({ length: 20 }, (_, n) => Buffer.from(`{"n":${n}}\n`)) },
  { name: 'large.bin', pieces: [randomBytes(70_000), Buffer.alloc(0), randomBytes(70_000)], zip64: true },
  // Stored in several blocks, deflated, and stored in one block.
  {
    name: 'mixed.tar',
    pieces: [randomBytes(200_000), Buffer.alloc(200_000, 'text'), randomBytes(65_535), Buffer.from('end')],
  },
  { name: 'attachments/att_1/Übersicht 令和 📎.pdf', pieces: [Buffer.from('%PDF')] },
];

describe('an archive', () => {
  test('stores compressed files as they are and deflates the rest', async () => {
    const { entry } = openEntry({ name: 'mixed', modifiedAt, offset: 0, zip64: false });
    const lengthOf = async (data: Buffer) => (await addChunk(entry, data)).entry.compressedBytes;
    // Five bytes for each block of 65,535.
    expect(await lengthOf(randomBytes(200_000))).toBe(200_000 + 4 * 5);
    expect(await lengthOf(Buffer.alloc(200_000, 'text'))).toBeLessThan(2_000);
    // Deflate reduces base64, as in messages, by a quarter.
    expect(await lengthOf(Buffer.from(randomBytes(150_000).toString('base64')))).toBeLessThan(160_000);
    const whole = await completeEntry({ name: 'whole', modifiedAt, offset: 0 }, randomBytes(100_000));
    expect(Buffer.concat(whole.bytes)).toHaveLength(30 + 'whole'.length + 100_000);
  });

  test('contains the entries that were written, for any entries', async () => {
    const source = fc.record({
      pieces: fc.array(
        fc.uint8Array({ maxLength: 3_000 }).map((bytes) => Buffer.from(bytes)),
        { maxLength: 4 },
      ),
      name: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
      zip64: fc.boolean(),
    });
    const path = join(folder, 'any.zip');
    await fc.assert(
      fc.asyncProperty(fc.array(source, { maxLength: 8 }), async (sources) => {
        await write(path, sources);
        const files = await readZip(path);
        expect(files.map(({ name }) => name)).toEqual(sources.map(({ name }) => name));
        for (const [index, file] of files.entries())
          expect((await file.read()).equals(Buffer.concat(sources[index]?.pieces ?? []))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  testPython('reads the same in Python', async () => {
    const path = join(folder, 'python.zip');
    await write(path, MIXED);
    const files = await readZip(path);
    const read = readWithPython(path);
    expect(read.map(({ name, size }) => ({ name, sizeBytes: size }))).toEqual(
      files.map(({ name, sizeBytes }) => ({ name, sizeBytes })),
    );
    expect(new Set(read.map(({ time }) => time.join('-')))).toEqual(new Set(['2026-11-21-10-20-30']));
  });

  testUnzip('passes unzip -t', async () => {
    const path = join(folder, 'unzip.zip');
    await write(path, MIXED);
    const { stdout, status } = spawnSync('unzip', ['-t', path], { encoding: 'utf8' });
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining('No errors') });
  });

  testPython(
    'of more than 65,535 entries has a Zip64 end record',
    async () => {
      const path = join(folder, 'many.zip');
      const sources = Array.from({ length: 65_600 }, (_, n) => ({
        name: `${n}`,
        pieces: [Buffer.from(String(n))],
      }));
      await write(path, sources);
      expect(await readZip(path)).toHaveLength(65_600);
      const read = readWithPython(path);
      expect(read).toHaveLength(65_600);
      expect(read.at(-1)).toMatchObject({ name: '65599', size: 5 });
    },
    180_000,
  );

  /** The first entry is a hole in a sparse file: it uses no disk space and is never read. */
  testPython('has Zip64 fields for an entry larger than 4 GiB and for an entry after it', async () => {
    const path = join(folder, 'sparse.zip');
    const sizeBytes = 4.5 * 2 ** 30;
    const huge: ZipEntry = {
      name: 'huge',
      modifiedAt,
      offset: 0,
      method: 0,
      streamed: false,
      zip64: true,
      crc32: 0,
      sizeBytes,
      compressedBytes: sizeBytes,
    };
    const header = buildLocalHeader(huge);
    const offset = header.length + sizeBytes;
    const following = await completeEntry({ name: 'behind', modifiedAt, offset }, Buffer.from('far away'));
    const begin = offset + Buffer.concat(following.bytes).length;
    const directory = Buffer.concat([buildDirectoryHeader(huge), following.directoryRecord]);
    const end = buildEndRecords({ entries: 2, offset: begin, sizeBytes: directory.length });
    const file = await open(path, 'w');
    await file.write(header, 0, header.length, 0);
    const tail = Buffer.concat([...following.bytes, directory, end]);
    await file.write(tail, 0, tail.length, offset);
    await file.close();

    const files = await readZip(path);
    expect(files.map(({ name, sizeBytes: size }) => [name, size])).toEqual([
      ['huge', sizeBytes],
      ['behind', 8],
    ]);
    expect((await files[1]?.read())?.toString()).toBe('far away');
    const script = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    print(z.getinfo('huge').file_size, z.read('behind').decode(), z.open('huge').read(3))`;
    const { stdout } = spawnSync('python3', ['-c', script, path], { encoding: 'utf8' });
    expect(stdout.trim()).toBe(`${sizeBytes} far away b'\\x00\\x00\\x00'`);
  });

  test('has Zip64 sizes for a streamed entry that unexpectedly exceeds 4 GiB', () => {
    const { entry } = openEntry({ name: 'grown', modifiedAt, offset: 5 * 2 ** 30, zip64: false });
    const closed = closeEntry({ ...entry, sizeBytes: 6 * 2 ** 30, compressedBytes: 10 });
    const [bytes, { directoryRecord: directory }] = [Buffer.concat(closed.bytes), closed];
    // Two bytes end the data, followed by the signature, CRC-32 and two sizes of 8 bytes.
    expect(bytes).toHaveLength(2 + 24);
    expect(bytes.readBigUInt64LE(2 + 16)).toBe(BigInt(6 * 2 ** 30));
    expect(directory.readUInt32LE(24)).toBe(0xffffffff);
    expect(directory.readUInt32LE(42)).toBe(0xffffffff);
  });

  test('rejects a name that is too long for a header', async () => {
    await expect(
      completeEntry({ name: 'x'.repeat(65_536), modifiedAt, offset: 0 }, Buffer.alloc(0)),
    ).rejects.toThrow(RangeError);
  });
});
