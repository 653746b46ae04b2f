import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { writeZip, type ZipFile } from '../../platform/zip.ts';
import { readZip } from '../support/zip-reader.ts';

const folder = mkdtempSync(join(tmpdir(), 'agent-email-zip-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const modifiedAt = new Date(Date.UTC(2026, 10, 21, 10, 20, 30));

interface Source {
  name: string;
  /** One is given as a whole, others as chunks. */
  pieces: Buffer[];
}

async function* toFiles(sources: Source[]): AsyncGenerator<ZipFile> {
  for (const { name, pieces } of sources) {
    const [only] = pieces;
    yield { name, modifiedAt, data: only && pieces.length === 1 ? only : Readable.from(pieces) };
  }
}

async function write(path: string, sources: Source[], zip64 = false): Promise<void> {
  await writeFile(path, await buffer(writeZip(toFiles(sources), { zip64 })));
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
  { name: 'large.bin', pieces: [randomBytes(70_000), Buffer.alloc(0), randomBytes(70_000)] },
  // Stored in several blocks, deflated, and stored in one block.
  {
    name: 'mixed.tar',
    pieces: [randomBytes(200_000), Buffer.alloc(200_000, 'text'), randomBytes(65_535), Buffer.from('end')],
  },
  { name: 'attachments/att_1/Übersicht 令和 📎.pdf', pieces: [Buffer.from('%PDF')] },
];

describe('an archive', () => {
  test('stores compressed files as they are and deflates the rest', async () => {
    const lengthOf = async (data: Buffer) =>
      (await buffer(writeZip(toFiles([{ name: '', pieces: [data] }])))).length - (await emptyArchive);
    const emptyArchive = buffer(writeZip(toFiles([{ name: '', pieces: [] }]))).then(({ length }) => length);
    // Five bytes for each block of 65,535.
    expect(await lengthOf(randomBytes(200_000))).toBe(200_000 + 4 * 5);
    expect(await lengthOf(Buffer.alloc(200_000, 'text'))).toBeLessThan(2_000);
    // Deflate reduces base64, as in messages, by a quarter.
    expect(await lengthOf(Buffer.from(randomBytes(150_000).toString('base64')))).toBeLessThan(160_000);
  });

  test('reads no file before the one before it is written', async () => {
    let opened = 0;
    async function* files(): AsyncGenerator<ZipFile> {
      for (;;) {
        opened += 1;
        yield { name: `${opened}`, modifiedAt, data: Buffer.from('text') };
      }
    }
    const chunks = writeZip(files());
    for (let read = 0; read < 30; read += 1) await chunks.next();
    expect(opened).toBe(10);
    await chunks.return(undefined);
  });

  test('contains the entries that were written, for any entries', async () => {
    const source = fc.record({
      pieces: fc.array(
        fc.uint8Array({ maxLength: 3_000 }).map((bytes) => Buffer.from(bytes)),
        { maxLength: 4 },
      ),
      name: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
    });
    const path = join(folder, 'any.zip');
    await fc.assert(
      fc.asyncProperty(fc.array(source, { maxLength: 8 }), fc.boolean(), async (sources, zip64) => {
        await write(path, sources, zip64);
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
    await write(path, MIXED, true);
    const { stdout, status } = spawnSync('unzip', ['-t', path], { encoding: 'utf8' });
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining('No errors') });
  });

  testPython(
    'of more than 65,535 entries has a Zip64 end record',
    async () => {
      const path = join(folder, 'many.zip');
      const sources = Array.from({ length: 65_600 }, (_, n) => ({
        name: `${n}`,
        // To deflate something for each takes 16 seconds.
        pieces: [Buffer.from(n === 65_599 ? '65599' : '')],
      }));
      await write(path, sources);
      expect(await readZip(path)).toHaveLength(65_600);
      const read = readWithPython(path);
      expect(read).toHaveLength(65_600);
      expect(read.at(-1)).toMatchObject({ name: '65599', size: 5 });
    },
    180_000,
  );

  testPython(
    'has Zip64 fields for a file larger than 4 GiB and for a file after it',
    async () => {
      const path = join(folder, 'sparse.zip');
      const huge = new HugeFile();
      const file = await open(path, 'w');
      let offset = 0;
      for await (const chunk of writeZip(huge.followedBy('behind', 'far away'), { zip64: true })) {
        // The data becomes a hole in a sparse file: it uses no disk space and is never read.
        if (!huge.isBlock(chunk)) await file.write(chunk, 0, chunk.length, offset);
        offset += chunk.length;
      }
      await file.close();
      const files = await readZip(path);
      expect(files.map(({ name, sizeBytes: size }) => [name, size])).toEqual([
        ['huge', huge.sizeBytes],
        ['behind', 8],
      ]);
      expect((await files[1]?.read())?.toString()).toBe('far away');
      const script = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    print(z.getinfo('huge').file_size, z.read('behind').decode())`;
      const { stdout } = spawnSync('python3', ['-c', script, path], { encoding: 'utf8' });
      expect(stdout.trim()).toBe(`${huge.sizeBytes} far away`);
    },
    180_000,
  );

  test('has Zip64 sizes for a file that unexpectedly exceeds 4 GiB', async () => {
    const huge = new HugeFile();
    const records: Buffer[] = [];
    for await (const chunk of writeZip(huge.followedBy('behind', 'far away')))
      if (!huge.isBlock(chunk)) records.push(chunk);
    const [header, end, , , , directory] = records;
    expect(header).toHaveLength(30 + 'huge'.length);
    // Two bytes end the data, followed by the signature, CRC-32 and two sizes of 8 bytes.
    expect(end).toHaveLength(2 + 24);
    expect(end?.readBigUInt64LE(2 + 16)).toBe(BigInt(huge.sizeBytes));
    expect(directory?.readUInt32LE(24)).toBe(0xffffffff);
    expect(directory?.readUInt32LE(46 + 4 + 4 + 16 + 42)).toBe(0xffffffff);
  }, 180_000);

  test('rejects a name that is too long for a header', async () => {
    const archive = writeZip(toFiles([{ name: 'x'.repeat(65_536), pieces: [] }]));
    await expect(buffer(archive)).rejects.toThrow(RangeError);
  });
});

/** A file of 4.5 GiB that is one chunk again and again. */
class HugeFile {
  readonly #chunk = randomBytes(64 * 2 ** 20);
  readonly #times = 72;
  readonly sizeBytes = this.#times * this.#chunk.length;

  /** Whether it is part of the stored data, or the five bytes before such a block. */
  isBlock(chunk: Buffer): boolean {
    return chunk.length <= 5 || (chunk.buffer === this.#chunk.buffer && chunk.length > 1_000);
  }

  async *followedBy(name: string, text: string): AsyncGenerator<ZipFile> {
    yield { name: 'huge', modifiedAt, data: Readable.from(Array(this.#times).fill(this.#chunk)) };
    yield { name, modifiedAt, data: Buffer.from(text) };
  }
}
