import { createReadStream, readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { crc32, inflateRawSync } from 'node:zlib';

export interface ZipFile {
  name: string;
  sizeBytes: number;
  /** Verified against size and CRC-32. */
  read(): Promise<Buffer>;
}

/**
 * Reads an archive strictly by its central directory: local headers must match it, and there must be no gaps between
 * entries. Written for the tests, so that they do not depend on installed programs; other readers are tested as well.
 */
export async function readZip(path: string): Promise<ZipFile[]> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const directory = endOf(file, size);
    const bytes = readAt(file, directory.offset, directory.sizeBytes);
    const files: (ZipFile & { end: number; begin: number })[] = [];
    for (let at = 0; at < bytes.length; ) {
      const entry = directoryEntry(bytes.subarray(at));
      at += entry.length;
      files.push({
        name: entry.name,
        sizeBytes: entry.sizeBytes,
        begin: entry.offset,
        end: endOfEntry(file, entry),
        read: () => readEntry(path, entry),
      });
    }
    if (files.length !== directory.entries)
      throw new Error('The number of entries in the directory is wrong');
    files.reduce((end, entry) => {
      if (entry.begin !== end) throw new Error(`${entry.name} does not start where the previous entry ends`);
      return entry.end;
    }, 0);
    return files;
  } finally {
    await file.close();
  }
}

type Entry = ReturnType<typeof directoryEntry>;

function readAt(file: FileHandle, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  // Synchronous: an entry needs three short reads, and passing each to another thread takes longer than reading.
  const bytesRead = readSync(file.fd, bytes, 0, length, position);
  if (bytesRead !== length) throw new Error('The archive is truncated');
  return bytes;
}

function endOf(file: FileHandle, size: number) {
  const end = readAt(file, size - 22, 22);
  if (end.readUInt32LE(0) !== 0x06054b50) throw new Error('No end of central directory');
  const short = {
    entries: end.readUInt16LE(10),
    sizeBytes: end.readUInt32LE(12),
    offset: end.readUInt32LE(16),
  };
  if (short.entries < 0xffff && short.sizeBytes < 0xffffffff && short.offset < 0xffffffff) return short;
  const locator = readAt(file, size - 42, 20);
  if (locator.readUInt32LE(0) !== 0x07064b50) throw new Error('No Zip64 locator');
  const zip64 = readAt(file, Number(locator.readBigUInt64LE(8)), 56);
  if (zip64.readUInt32LE(0) !== 0x06064b50) throw new Error('No Zip64 end of central directory');
  return {
    entries: Number(zip64.readBigUInt64LE(32)),
    sizeBytes: Number(zip64.readBigUInt64LE(40)),
    offset: Number(zip64.readBigUInt64LE(48)),
  };
}

function directoryEntry(bytes: Buffer) {
  if (bytes.readUInt32LE(0) !== 0x02014b50) throw new Error('No file header');
  const nameLength = bytes.readUInt16LE(28);
  const extraLength = bytes.readUInt16LE(30);
  const extra = bytes.subarray(46 + nameLength, 46 + nameLength + extraLength);
  const large = zip64Numbers(extra);
  const orLarge = (value: number) => (value === 0xffffffff ? Number(large.shift()) : value);
  const sizeBytes = orLarge(bytes.readUInt32LE(24));
  const compressedBytes = orLarge(bytes.readUInt32LE(20));
  const offset = orLarge(bytes.readUInt32LE(42));
  if (large.length > 0) throw new Error('An unused Zip64 field');
  return {
    name: new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(46, 46 + nameLength)),
    flags: bytes.readUInt16LE(8),
    method: bytes.readUInt16LE(10),
    crc32: bytes.readUInt32LE(16),
    sizeBytes,
    compressedBytes,
    offset,
    zip64: extraLength > 0,
    length: 46 + nameLength + extraLength,
  };
}

function zip64Numbers(extra: Buffer): bigint[] {
  if (extra.length === 0) return [];
  if (extra.readUInt16LE(0) !== 1 || extra.readUInt16LE(2) !== extra.length - 4)
    throw new Error('An extra field that is not Zip64');
  return Array.from({ length: (extra.length - 4) / 8 }, (_, index) => extra.readBigUInt64LE(4 + 8 * index));
}

function dataOf(file: FileHandle, entry: Entry): number {
  const header = readAt(file, entry.offset, 30);
  if (header.readUInt32LE(0) !== 0x04034b50) throw new Error(`No local header of ${entry.name}`);
  if (header.readUInt16LE(6) !== entry.flags || header.readUInt16LE(8) !== entry.method)
    throw new Error(`The headers of ${entry.name} differ`);
  const name = readAt(file, entry.offset + 30, header.readUInt16LE(26));
  if (name.toString() !== entry.name) throw new Error(`The local header says ${name}, not ${entry.name}`);
  return entry.offset + 30 + name.length + header.readUInt16LE(28);
}

/** Also checks the data descriptor. */
function endOfEntry(file: FileHandle, entry: Entry): number {
  const end = dataOf(file, entry) + entry.compressedBytes;
  if ((entry.flags & 8) === 0) return end;
  const wide = readAt(file, entry.offset, 30).readUInt16LE(28) > 0;
  const descriptor = readAt(file, end, wide ? 24 : 16);
  const sizes = wide
    ? [Number(descriptor.readBigUInt64LE(8)), Number(descriptor.readBigUInt64LE(16))]
    : [descriptor.readUInt32LE(8), descriptor.readUInt32LE(12)];
  if (descriptor.readUInt32LE(0) !== 0x08074b50 || descriptor.readUInt32LE(4) !== entry.crc32)
    throw new Error(`The descriptor of ${entry.name} is wrong`);
  if (sizes[0] !== entry.compressedBytes || sizes[1] !== entry.sizeBytes)
    throw new Error(`The descriptor of ${entry.name} has wrong sizes`);
  return end + descriptor.length;
}

async function readEntry(path: string, entry: Entry): Promise<Buffer> {
  const file = await open(path);
  let start: number;
  try {
    start = dataOf(file, entry);
  } finally {
    await file.close();
  }
  if (entry.compressedBytes === 0) return Buffer.alloc(0);
  const raw = await buffer(createReadStream(path, { start, end: start + entry.compressedBytes - 1 }));
  const bytes = entry.method === 8 ? inflateRawSync(raw) : raw;
  if (bytes.length !== entry.sizeBytes || crc32(bytes) !== entry.crc32)
    throw new Error(`${entry.name} is damaged`);
  return bytes;
}
