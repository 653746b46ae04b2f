import { Transform } from 'node:stream';
import { MalformedHeaderError } from './header-fields.ts';

/** Mail clients write headers of a few KiB. The longest contain chains of signatures and trace fields. */
const MAX_HEADER_BYTES = 256 * 1024;

export interface MessageMapping {
  /** Called once with the bytes before the empty line. An error that it throws fails the stream. */
  mapHeader(header: Buffer): Buffer;
  /** Called with the rest, chunk by chunk, starting with the empty line. */
  mapBody(chunk: Buffer): Buffer;
  /** Called after the last chunk. Returns the last bytes of the message. */
  endBody?(): Buffer;
}

/**
 * Creates a stream that buffers a message's header and maps its body chunk by chunk. A message without an empty line
 * consists only of a header and gets an empty line.
 *
 * @throws MalformedHeaderError if the header is longer than 256 KiB.
 */
export function mapMessage({ mapHeader, mapBody, endBody }: MessageMapping): Transform {
  const chunks: Buffer[] = [];
  let headerBytes = 0;
  /** The last three bytes: the empty line may begin in one chunk and end in the next. */
  let tail = Buffer.alloc(0);
  let inHeader = true;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (!inHeader) return done(null, mapBody(chunk));
      const searched = Buffer.concat([tail, chunk]);
      const found = findEmptyLine(searched, headerBytes === tail.length);
      chunks.push(chunk);
      headerBytes += chunk.length;
      tail = searched.subarray(-3);
      if (found === -1 && headerBytes <= MAX_HEADER_BYTES) return done();
      if (found === -1) return done(tooLong());
      const whole = Buffer.concat(chunks);
      const end = whole.length - searched.length + found;
      if (end > MAX_HEADER_BYTES) return done(tooLong());
      inHeader = false;
      try {
        this.push(mapHeader(whole.subarray(0, end)));
      } catch (error) {
        return done(error as Error);
      }
      done(null, mapBody(whole.subarray(end)));
    },
    flush(done) {
      try {
        if (inHeader) {
          this.push(mapHeader(Buffer.concat(chunks)));
          this.push(mapBody(Buffer.from('\r\n')));
        }
      } catch (error) {
        return done(error as Error);
      }
      done(null, endBody?.() ?? null);
    },
  });
}

function tooLong(): MalformedHeaderError {
  return new MalformedHeaderError(`The header is longer than ${MAX_HEADER_BYTES / 1024} KiB.`);
}

/**
 * Returns the offset of the empty line that ends the header, or -1. Here a bare LF also ends a line, so that the header
 * parser sees and rejects it.
 *
 * @param atStart whether the bytes are the first of the message, which may have an empty header.
 */
function findEmptyLine(bytes: Buffer, atStart: boolean): number {
  if (atStart && (bytes[0] === LF || (bytes[0] === CR && bytes[1] === LF))) return 0;
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    const next = bytes[at + 1];
    if (next === LF || (next === CR && bytes[at + 2] === LF)) return at + 1;
  }
  return -1;
}

const CR = 0x0d;
const LF = 0x0a;
