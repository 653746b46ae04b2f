import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, deflateRawSync } from 'node:zlib';

/**
 * Builds the records of a ZIP archive (PKWARE APPNOTE.TXT 6.3.10) without keeping state: a writer can stop after any
 * record and continue in another process. Packages (`archiver`, `yazl`) keep the state of an archive in a stream, which
 * cannot be stored.
 *
 * A small entry is one record ({@link completeEntry}). A large one is opened ({@link openEntry}), filled chunk by chunk
 * ({@link addChunk}) and closed ({@link closeEntry}); in between, its state is a plain object that can be stored. Each
 * entry also has a record for the central directory, which is written at the end, followed by {@link buildEndRecords}.
 */
export interface ZipEntry {
  /** Path within the archive, with `/`; at most 65,535 bytes as UTF-8. */
  name: string;
  /**
   * Milliseconds since 1970. Stored as UTC with a resolution of two seconds (section 4.4.6); readers show it as local
   * time.
   */
  modifiedAt: number;
  /** Offset of its local header. */
  offset: number;
  /** 0: stored. 8: deflated (section 4.4.5). */
  method: 0 | 8;
  /** The sizes follow the data (bit 3, section 4.4.4), because they are not known when the header is written. */
  streamed: boolean;
  /** May exceed 4 GiB: both headers have 8-byte size fields from the start (section 4.5.3). */
  zip64: boolean;
  crc32: number;
  sizeBytes: number;
  compressedBytes: number;
}

export interface ZipRecord {
  /** Append these to the archive, in order. */
  bytes: Buffer[];
  /** Add this to the central directory. */
  directoryRecord: Buffer;
}

const deflate = promisify<Buffer, object, Buffer>(deflateRaw);
/** The data is text and compressed files; higher levels take twice the time and save 5 %. */
const COMPRESSION_LEVEL = 1;
/** An empty final block with fixed codes (RFC 1951 section 3.2.6): terminates a chunked entry. */
const FINAL_BLOCK = Buffer.of(0x03, 0x00);

/** Data below this size is deflated synchronously: passing it to another thread takes longer. */
const SYNC_MAX_BYTES = 16 * 1024;
/** Maximum size of deflate's output buffers; each buffer is a round trip to another thread. */
const MAX_CHUNK_BYTES = 256 * 1024;
const MIN_CHUNK_BYTES = 64;
/** A stored block (RFC 1951 section 3.2.4) has a 16-bit length. */
const MAX_BLOCK_BYTES = 0xffff;
const SAMPLE_BYTES = 4 * 1024;

const MAX_16 = 0xffff;
const MAX_32 = 0xffff_ffff;
/** Section 4.4.3: version needed to extract. */
const VERSION_DEFLATE = 20;
const VERSION_ZIP64 = 45;
/** Section 4.4.2: upper byte 3 is UNIX, so the upper half of the external attributes is a file mode. */
const MADE_BY_UNIX = (3 << 8) | VERSION_ZIP64;
const REGULAR_FILE = (0o100644 << 16) >>> 0;
const STREAMED = 1 << 3;
/** Section 4.4.4, bit 11: the name is UTF-8. */
const UTF_8 = 1 << 11;

/** Builds an entry whose data is complete; its header contains the sizes. */
export async function completeEntry(
  { name, modifiedAt, offset }: Pick<ZipEntry, 'name' | 'modifiedAt' | 'offset'>,
  data: Buffer,
): Promise<ZipRecord> {
  const deflated = isIncompressible(data) ? data : await deflateBuffer(data);
  const smaller = deflated.length < data.length;
  const body = smaller ? deflated : data;
  const entry: ZipEntry = {
    name,
    modifiedAt,
    offset,
    method: smaller ? 8 : 0,
    streamed: false,
    zip64: false,
    crc32: crc32(data),
    sizeBytes: data.length,
    compressedBytes: body.length,
  };
  return { bytes: [buildLocalHeader(entry), body], directoryRecord: buildDirectoryHeader(entry) };
}

/** Starts an entry whose data follows in chunks. */
export function openEntry(entry: Pick<ZipEntry, 'name' | 'modifiedAt' | 'offset' | 'zip64'>): {
  bytes: Buffer;
  entry: ZipEntry;
} {
  const opened: ZipEntry = {
    ...entry,
    method: 8,
    streamed: true,
    crc32: 0,
    sizeBytes: 0,
    compressedBytes: 0,
  };
  return { bytes: buildLocalHeader(opened), entry: opened };
}

/**
 * Adds data to an open entry. Each chunk is deflated independently, or stored if deflating saves nothing, and ends on a
 * byte boundary (full flush). The next chunk therefore needs no dictionary, and another process can write it.
 */
export async function addChunk(entry: ZipEntry, data: Buffer): Promise<{ bytes: Buffer[]; entry: ZipEntry }> {
  if (data.length === 0) return { bytes: [], entry };
  const bytes = isIncompressible(data)
    ? buildStoredBlocks(data)
    : [await deflateBuffer(data, constants.Z_FULL_FLUSH)];
  return {
    bytes,
    entry: {
      ...entry,
      crc32: crc32(data, entry.crc32),
      sizeBytes: entry.sizeBytes + data.length,
      compressedBytes: entry.compressedBytes + bytes.reduce((sum, { length }) => sum + length, 0),
    },
  };
}

function deflateBuffer(data: Buffer, finishFlush: number = constants.Z_FINISH): Buffer | Promise<Buffer> {
  // A partly filled output buffer stays allocated at full size.
  const chunkSize = Math.min(data.length + MIN_CHUNK_BYTES, MAX_CHUNK_BYTES);
  const options = { level: COMPRESSION_LEVEL, finishFlush, chunkSize };
  return data.length < SYNC_MAX_BYTES ? deflateRawSync(data, options) : deflate(data, options);
}

/** True for images, archives and most documents: deflating them takes most of an export's time and saves nothing. */
function isIncompressible(data: Buffer): boolean {
  if (data.length < SYNC_MAX_BYTES) return false;
  const last = data.length - SAMPLE_BYTES;
  const places = [0, Math.floor(last / 2), last];
  const sample = Buffer.concat(places.map((place) => data.subarray(place, place + SAMPLE_BYTES)));
  return deflateRawSync(sample, { level: COMPRESSION_LEVEL }).length > sample.length * 0.98;
}

/** Stored blocks within a deflated entry (RFC 1951 section 3.2.4). Byte-aligned; none of them is the final block. */
function buildStoredBlocks(data: Buffer): Buffer[] {
  const blocks: Buffer[] = [];
  for (let start = 0; start < data.length; start += MAX_BLOCK_BYTES) {
    const block = data.subarray(start, start + MAX_BLOCK_BYTES);
    blocks.push(
      new RecordBuilder(5)
        .u8(0)
        .u16(block.length)
        .u16(~block.length & MAX_16).bytes,
      block,
    );
  }
  return blocks;
}

/** Ends an open entry. */
export function closeEntry(entry: ZipEntry): ZipRecord {
  const closed = { ...entry, compressedBytes: entry.compressedBytes + FINAL_BLOCK.length };
  return {
    bytes: [FINAL_BLOCK, buildDataDescriptor(closed)],
    directoryRecord: buildDirectoryHeader(closed),
  };
}

/** Local file header, section 4.3.7. */
export function buildLocalHeader(entry: ZipEntry): Buffer {
  const name = encodeName(entry);
  // Section 4.5.3: the local header has either both sizes or none.
  const extra = entry.zip64
    ? buildZip64Extra(entry.streamed ? [0, 0] : [entry.sizeBytes, entry.compressedBytes])
    : Buffer.alloc(0);
  const fixed = new RecordBuilder(30)
    .u32(0x04034b50)
    .u16(entry.zip64 ? VERSION_ZIP64 : VERSION_DEFLATE)
    .u16(getFlags(entry))
    .u16(entry.method)
    .u16(toDosTime(entry.modifiedAt))
    .u16(toDosDate(entry.modifiedAt))
    .u32(entry.streamed ? 0 : entry.crc32)
    .u32(entry.zip64 ? MAX_32 : entry.streamed ? 0 : entry.compressedBytes)
    .u32(entry.zip64 ? MAX_32 : entry.streamed ? 0 : entry.sizeBytes)
    .u16(name.length)
    .u16(extra.length);
  return Buffer.concat([fixed.bytes, name, extra]);
}

/** Section 4.3.9, with the signature recommended by section 4.3.9.3. */
function buildDataDescriptor({ crc32: sum, sizeBytes, compressedBytes, zip64 }: ZipEntry): Buffer {
  if (zip64 || sizeBytes > MAX_32 || compressedBytes > MAX_32)
    return new RecordBuilder(24).u32(0x08074b50).u32(sum).u64(compressedBytes).u64(sizeBytes).bytes;
  return new RecordBuilder(16).u32(0x08074b50).u32(sum).u32(compressedBytes).u32(sizeBytes).bytes;
}

/** File header of the central directory, section 4.3.12. */
export function buildDirectoryHeader(entry: ZipEntry): Buffer {
  const { sizeBytes, compressedBytes, offset } = entry;
  const name = encodeName(entry);
  const largeSizes = entry.zip64 || sizeBytes >= MAX_32 || compressedBytes >= MAX_32;
  const largeOffset = offset >= MAX_32;
  // Section 4.5.3: only the fields that are 0xFFFFFFFF in the header, in this order.
  const large = [...(largeSizes ? [sizeBytes, compressedBytes] : []), ...(largeOffset ? [offset] : [])];
  const extra = large.length > 0 ? buildZip64Extra(large) : Buffer.alloc(0);
  const fixed = new RecordBuilder(46)
    .u32(0x02014b50)
    .u16(MADE_BY_UNIX)
    .u16(large.length > 0 ? VERSION_ZIP64 : VERSION_DEFLATE)
    .u16(getFlags(entry))
    .u16(entry.method)
    .u16(toDosTime(entry.modifiedAt))
    .u16(toDosDate(entry.modifiedAt))
    .u32(entry.crc32)
    .u32(largeSizes ? MAX_32 : compressedBytes)
    .u32(largeSizes ? MAX_32 : sizeBytes)
    .u16(name.length)
    .u16(extra.length)
    // Comment, disk, internal attributes.
    .u16(0)
    .u16(0)
    .u16(0)
    .u32(REGULAR_FILE)
    .u32(largeOffset ? MAX_32 : offset);
  return Buffer.concat([fixed.bytes, name, extra]);
}

export interface CentralDirectory {
  entries: number;
  offset: number;
  sizeBytes: number;
}

/**
 * Records after the central directory: the end of central directory (section 4.3.16), preceded by the Zip64 end record
 * and its locator if a number does not fit (sections 4.3.14 and 4.3.15).
 */
export function buildEndRecords({ entries, offset, sizeBytes }: CentralDirectory): Buffer {
  const end = new RecordBuilder(22)
    .u32(0x06054b50)
    .u16(0)
    .u16(0)
    .u16(Math.min(entries, MAX_16))
    .u16(Math.min(entries, MAX_16))
    .u32(Math.min(sizeBytes, MAX_32))
    .u32(Math.min(offset, MAX_32))
    .u16(0).bytes;
  if (entries < MAX_16 && sizeBytes < MAX_32 && offset < MAX_32) return end;
  const zip64End = new RecordBuilder(56)
    .u32(0x06064b50)
    // Size of the rest of this record.
    .u64(44)
    .u16(MADE_BY_UNIX)
    .u16(VERSION_ZIP64)
    .u32(0)
    .u32(0)
    .u64(entries)
    .u64(entries)
    .u64(sizeBytes)
    .u64(offset).bytes;
  const locator = new RecordBuilder(20)
    .u32(0x07064b50)
    .u32(0)
    .u64(offset + sizeBytes)
    .u32(1).bytes;
  return Buffer.concat([zip64End, locator, end]);
}

function encodeName({ name }: ZipEntry): Buffer {
  const bytes = Buffer.from(name);
  if (bytes.length > MAX_16) throw new RangeError('The name of an entry is too long');
  return bytes;
}

function getFlags({ streamed }: ZipEntry): number {
  return UTF_8 | (streamed ? STREAMED : 0);
}

/** Zip64 extended information, section 4.5.3. */
function buildZip64Extra(numbers: number[]): Buffer {
  const fields = new RecordBuilder(4 + 8 * numbers.length).u16(0x0001).u16(8 * numbers.length);
  for (const number of numbers) fields.u64(number);
  return fields.bytes;
}

/** Section 4.4.6. Covers the years 1980 to 2107. */
function toDosDate(milliseconds: number): number {
  const time = new Date(milliseconds);
  const year = Math.min(Math.max(time.getUTCFullYear(), 1980), 2107);
  return ((year - 1980) << 9) | ((time.getUTCMonth() + 1) << 5) | time.getUTCDate();
}

function toDosTime(milliseconds: number): number {
  const time = new Date(milliseconds);
  return (time.getUTCHours() << 11) | (time.getUTCMinutes() << 5) | (time.getUTCSeconds() >> 1);
}

/** Little-endian numbers, one after another (section 4.4.1.1). */
class RecordBuilder {
  readonly bytes: Buffer;
  #position = 0;

  constructor(length: number) {
    this.bytes = Buffer.alloc(length);
  }

  u8(value: number): this {
    this.#position = this.bytes.writeUInt8(value, this.#position);
    return this;
  }

  u16(value: number): this {
    this.#position = this.bytes.writeUInt16LE(value, this.#position);
    return this;
  }

  u32(value: number): this {
    this.#position = this.bytes.writeUInt32LE(value, this.#position);
    return this;
  }

  u64(value: number): this {
    this.#position = this.bytes.writeBigUInt64LE(BigInt(value), this.#position);
    return this;
  }
}
