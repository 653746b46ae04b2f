import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, deflateRawSync } from 'node:zlib';

/** A file to be written to an archive. */
export interface ZipFile {
  /** Path within the archive, with `/`; at most 65,535 bytes as UTF-8. */
  name: string;
  /** Stored as UTC with a resolution of two seconds (section 4.4.6); readers show it as local time. */
  modifiedAt: Date;
  /** All bytes, or chunks of them, of which one is in memory at a time. */
  data: Buffer | AsyncIterable<Buffer>;
}

/** What the records of a file contain. The sizes are known when its data is written. */
interface ZipEntry extends Pick<ZipFile, 'name' | 'modifiedAt'> {
  /** Offset of its local header. */
  offset: number;
  /** Has 8-byte sizes from the start, because it may exceed 4 GiB (section 4.5.3). */
  zip64: boolean;
  crc32: number;
  sizeBytes: number;
  compressedBytes: number;
}

const deflate = promisify<Buffer, object, Buffer>(deflateRaw);
/** The data is text and compressed files; higher levels take twice the time and save 5 %. */
const COMPRESSION_LEVEL = 1;
/** An empty final block with fixed codes (RFC 1951 section 3.2.6): ends the chunks of a file. */
const FINAL_BLOCK = Buffer.of(0x03, 0x00);

/** Data below this size is deflated synchronously: passing it to another thread takes longer. */
const SYNC_MAX_BYTES = 16 * 1024;
/** Maximum size of deflate's output buffers; each buffer is a round trip to another thread. */
const MAX_CHUNK_BYTES = 256 * 1024;
const MIN_CHUNK_BYTES = 64;
/** A stored block (RFC 1951 section 3.2.4) has a 16-bit length. */
const MAX_BLOCK_BYTES = 0xffff;
const SAMPLE_BYTES = 4 * 1024;
const DIRECTORY_BLOCK_BYTES = 256 * 1024;

const MAX_16 = 0xffff;
const MAX_32 = 0xffff_ffff;
/** Section 4.4.3: version needed to extract. */
const VERSION_DEFLATE = 20;
const VERSION_ZIP64 = 45;
/** Section 4.4.2: upper byte 3 is UNIX, so the upper half of the external attributes is a file mode. */
const MADE_BY_UNIX = (3 << 8) | VERSION_ZIP64;
const REGULAR_FILE = (0o100644 << 16) >>> 0;
/** Section 4.4.4: the sizes follow the data (bit 3), and the name is UTF-8 (bit 11). */
const FLAGS = (1 << 3) | (1 << 11);
/** Section 4.4.5. */
const DEFLATED = 8;

/**
 * Writes a ZIP archive (PKWARE APPNOTE.TXT 6.3.10) as its consumer reads it. Of a file that is written only its record of the
 * central directory stays in memory, about 100 bytes (docs/decisions/2026-11-23-exports-start-again.md).
 *
 * @param options.zip64 whether a file that comes in chunks may exceed 4 GiB.
 */
export async function* writeZip(
  files: AsyncIterable<ZipFile>,
  { zip64 = false }: { zip64?: boolean } = {},
): AsyncGenerator<Buffer> {
  const directory = new CentralDirectory();
  let offset = 0;
  for await (const { name, modifiedAt, data } of files) {
    const entry: ZipEntry = {
      name,
      modifiedAt,
      offset,
      zip64: zip64 && !Buffer.isBuffer(data),
      crc32: 0,
      sizeBytes: 0,
      compressedBytes: 0,
    };
    const header = buildLocalHeader(entry);
    yield header;
    for await (const chunk of Buffer.isBuffer(data) ? [data] : data) yield* compress(entry, chunk);
    entry.compressedBytes += FINAL_BLOCK.length;
    const end = Buffer.concat([FINAL_BLOCK, buildDataDescriptor(entry)]);
    yield end;
    offset += header.length + entry.compressedBytes + end.length - FINAL_BLOCK.length;
    directory.add(buildDirectoryHeader(entry));
  }
  yield* directory.blocks();
  yield buildEndRecords(directory, offset);
}

/** Deflates a chunk by itself, up to a full flush, or stores it if deflating saves nothing. Adds it to the entry's sizes. */
async function* compress(entry: ZipEntry, chunk: Buffer): AsyncGenerator<Buffer> {
  if (chunk.length === 0) return;
  entry.crc32 = crc32(chunk, entry.crc32);
  entry.sizeBytes += chunk.length;
  const blocks = isIncompressible(chunk) ? buildStoredBlocks(chunk) : [await deflateChunk(chunk)];
  for (const block of blocks) {
    entry.compressedBytes += block.length;
    yield block;
  }
}

function deflateChunk(chunk: Buffer): Buffer | Promise<Buffer> {
  // A partly filled output buffer stays allocated at full size.
  const chunkSize = Math.min(chunk.length + MIN_CHUNK_BYTES, MAX_CHUNK_BYTES);
  const options = { level: COMPRESSION_LEVEL, finishFlush: constants.Z_FULL_FLUSH, chunkSize };
  return chunk.length < SYNC_MAX_BYTES ? deflateRawSync(chunk, options) : deflate(chunk, options);
}

/** True for images, archives and most documents: deflating them takes most of an export's time and saves nothing. */
function isIncompressible(data: Buffer): boolean {
  if (data.length < SYNC_MAX_BYTES) return false;
  const last = data.length - SAMPLE_BYTES;
  const places = [0, Math.floor(last / 2), last];
  const sample = Buffer.concat(places.map((place) => data.subarray(place, place + SAMPLE_BYTES)));
  return deflateRawSync(sample, { level: COMPRESSION_LEVEL }).length > sample.length * 0.98;
}

/** Stored blocks of deflated data (RFC 1951 section 3.2.4). Byte-aligned; none of them is the final block. */
function buildStoredBlocks(data: Buffer): Buffer[] {
  const blocks: Buffer[] = [];
  for (let start = 0; start < data.length; start += MAX_BLOCK_BYTES) {
    const block = data.subarray(start, start + MAX_BLOCK_BYTES);
    const length = block.length;
    blocks.push(
      new RecordBuilder(5)
        .u8(0)
        .u16(length)
        .u16(~length & MAX_16).bytes,
      block,
    );
  }
  return blocks;
}

/** Packed into large blocks: a buffer for each record would take several times its size. */
class CentralDirectory {
  entries = 0;
  sizeBytes = 0;
  readonly #full: Buffer[] = [];
  #block = Buffer.alloc(0);
  #filled = 0;

  add(record: Buffer): void {
    if (this.#filled + record.length > this.#block.length) {
      this.#full.push(this.#block.subarray(0, this.#filled));
      this.#block = Buffer.allocUnsafeSlow(Math.max(DIRECTORY_BLOCK_BYTES, record.length));
      this.#filled = 0;
    }
    this.#filled += record.copy(this.#block, this.#filled);
    this.entries += 1;
    this.sizeBytes += record.length;
  }

  *blocks(): Generator<Buffer> {
    yield* this.#full;
    yield this.#block.subarray(0, this.#filled);
  }
}

/** Local file header, section 4.3.7. */
function buildLocalHeader(entry: ZipEntry): Buffer {
  const name = encodeName(entry);
  const extra = entry.zip64 ? buildZip64Extra([0, 0]) : Buffer.alloc(0);
  const size = entry.zip64 ? MAX_32 : 0;
  const fixed = new RecordBuilder(30)
    .u32(0x04034b50)
    .u16(entry.zip64 ? VERSION_ZIP64 : VERSION_DEFLATE)
    .u16(FLAGS)
    .u16(DEFLATED)
    .u16(toDosTime(entry.modifiedAt))
    .u16(toDosDate(entry.modifiedAt))
    .u32(0)
    .u32(size)
    .u32(size)
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
function buildDirectoryHeader(entry: ZipEntry): Buffer {
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
    .u16(FLAGS)
    .u16(DEFLATED)
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

/**
 * Records after the central directory: its end (section 4.3.16), preceded by the Zip64 end record and its locator if a number
 * does not fit (sections 4.3.14 and 4.3.15).
 *
 * @param offset where the central directory begins.
 */
function buildEndRecords(
  { entries, sizeBytes }: Pick<CentralDirectory, 'entries' | 'sizeBytes'>,
  offset: number,
): Buffer {
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
  if (bytes.length > MAX_16) throw new RangeError('The name of a file is too long');
  return bytes;
}

/** Zip64 extended information, section 4.5.3. */
function buildZip64Extra(numbers: number[]): Buffer {
  const fields = new RecordBuilder(4 + 8 * numbers.length).u16(0x0001).u16(8 * numbers.length);
  for (const number of numbers) fields.u64(number);
  return fields.bytes;
}

/** Section 4.4.6. Covers the years 1980 to 2107. */
function toDosDate(time: Date): number {
  const year = Math.min(Math.max(time.getUTCFullYear(), 1980), 2107);
  return ((year - 1980) << 9) | ((time.getUTCMonth() + 1) << 5) | time.getUTCDate();
}

function toDosTime(time: Date): number {
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
