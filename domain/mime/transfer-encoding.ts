import { PassThrough, Transform } from 'node:stream';

/** The transfer encodings that change the content (RFC 2045 section 6.1). */
export type TransferEncoding = 'base64' | 'quoted-printable' | 'identity';

/**
 * Reads a Content-Transfer-Encoding field, including the mistakes of some programs: quotes, parameters,
 * `quoted printable`.
 */
export function toTransferEncoding(field: string): TransferEncoding {
  const name = /^[\s"']*([a-z0-9 _-]{1,40})/i.exec(field)?.[1]?.trim().toLowerCase() ?? '';
  if (/^base[ _-]?64$/.test(name)) return 'base64';
  return /^quoted[ _-]?printable$/.test(name) ? 'quoted-printable' : 'identity';
}

/** Creates a stream that decodes a content. Octets that the encoding forbids are handled as RFC 2045 requires. */
export function createTransferDecoder(encoding: TransferEncoding): Transform {
  if (encoding === 'base64') return createBase64Decoder();
  return encoding === 'quoted-printable' ? createQuotedPrintableDecoder() : new PassThrough();
}

/**
 * RFC 2045 section 6.8: characters outside the alphabet are ignored. Padding ends a sequence, but not the content,
 * because some programs join encoded pieces.
 */
function createBase64Decoder(): Transform {
  let pending = '';
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const sequences = (pending + chunk.toString('latin1').replace(/[^A-Za-z0-9+/=]+/g, '')).split('=');
      const open = sequences.pop() ?? '';
      const whole = open.length - (open.length % 4);
      pending = open.slice(whole);
      const decoded = [...sequences, open.slice(0, whole)].filter((text) => text !== '');
      done(null, Buffer.concat(decoded.map((text) => Buffer.from(text, 'base64'))));
    },
    flush(done) {
      done(null, Buffer.from(pending, 'base64'));
    },
  });
}

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const EQUALS = 0x3d;

/**
 * RFC 2045 section 6.7: white space at the end of a line is ignored, `=` at the end of a line joins it with the next
 * one, and unencoded octets stay, including 8-bit octets, which many programs do not encode.
 */
function createQuotedPrintableDecoder(): Transform {
  const decoder = new QuotedPrintable();
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      done(null, decoder.decode(chunk));
    },
    flush(done) {
      done(null, decoder.end());
    },
  });
}

class QuotedPrintable {
  #out = Buffer.alloc(0);
  #size = 0;
  /** White space, and the CR after it, that may end a line. */
  #space: number[] = [];
  /** The octets after an open `=`; null if none is open. */
  #escape: number[] | null = null;

  decode(chunk: Buffer): Buffer {
    this.#out = Buffer.allocUnsafe(chunk.length + this.#space.length + (this.#escape?.length ?? 0) + 1);
    this.#size = 0;
    for (const octet of chunk) this.#read(octet);
    return this.#out.subarray(0, this.#size);
  }

  /** White space and an `=` at the end of the content are handled as at the end of a line. */
  end(): Buffer {
    const digits = (this.#escape ?? []).filter((octet) => !isSpace(octet));
    return Buffer.from(digits.length === 0 ? [] : [EQUALS, ...digits]);
  }

  #read(octet: number): void {
    if (this.#escape) this.#readEscape(this.#escape, octet);
    else this.#readText(octet);
  }

  #readText(octet: number): void {
    if (octet === LF) this.#endLine();
    else if (octet === CR && this.#space.at(-1) !== CR) this.#space.push(octet);
    else if (isSpace(octet) && this.#space.at(-1) !== CR) this.#space.push(octet);
    else {
      this.#writeSpace();
      if (octet === EQUALS) this.#escape = [];
      else if (isSpace(octet)) this.#space.push(octet);
      else this.#write(octet);
    }
  }

  #endLine(): void {
    if (this.#space.at(-1) === CR) this.#write(CR);
    this.#space = [];
    this.#write(LF);
  }

  #readEscape(read: number[], octet: number): void {
    const [first] = read;
    if (read.length === 1 && first !== undefined && isHex(first) && isHex(octet)) {
      this.#escape = null;
      this.#write(Number.parseInt(String.fromCharCode(first, octet), 16));
      return;
    }
    const isLineEnd = first === undefined || isSpace(first);
    if (isLineEnd && octet === LF) this.#escape = null;
    else if ((first === undefined && isHex(octet)) || (isLineEnd && isSpace(octet) && read.at(-1) !== CR))
      read.push(octet);
    else {
      // Not an escape, so all of it is text.
      this.#escape = null;
      this.#write(EQUALS);
      for (const one of read) this.#readText(one);
      this.#readText(octet);
    }
  }

  #writeSpace(): void {
    for (const octet of this.#space) this.#write(octet);
    this.#space = [];
  }

  #write(octet: number): void {
    this.#out[this.#size] = octet;
    this.#size += 1;
  }
}

function isSpace(octet: number): boolean {
  return octet === SPACE || octet === TAB || octet === CR;
}

function isHex(octet: number): boolean {
  return (
    (octet >= 0x30 && octet <= 0x39) || (octet >= 0x41 && octet <= 0x46) || (octet >= 0x61 && octet <= 0x66)
  );
}
