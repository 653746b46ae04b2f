import { createReadStream, createWriteStream, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export interface SpooledRecipient {
  address: string;
  /** Values of NOTIFY (RFC 3461); undefined means failures only. */
  notify?: string[];
  originalRecipient?: string;
}

export interface SpooledMail {
  id: string;
  /** MAIL FROM; empty for reports. */
  returnPath: string;
  envelopeId?: string;
  arrivedAt: string;
  /** Trace field that this relay added at the top. */
  trace: string;
  recipients: SpooledRecipient[];
  /** Whether the mail UI shows it; false for this relay's own reports to the service. */
  shown: boolean;
}

export interface MailSpool {
  /** Once this resolves, the message survives an exit of the process. */
  add(mail: SpooledMail, content: Readable | Buffer): Promise<void>;
  read(id: string): Readable;
  /** The header block as received. */
  headersOf(mail: SpooledMail): Promise<string>;
  remove(id: string): Promise<void>;
  /** Messages that an earlier run accepted and did not settle. */
  unfinished(): SpooledMail[];
}

const MAX_HEADER_BYTES = 64 * 1024;

/** Stores accepted messages: one file per message, and one with its envelope that makes it valid. */
export function createMailSpool(directory: string): MailSpool {
  mkdirSync(directory, { recursive: true });
  const contentFile = (id: string) => join(directory, `${id}.eml`);
  const envelopeFile = (id: string) => join(directory, `${id}.json`);
  return {
    async add(mail, content) {
      const source = Buffer.isBuffer(content) ? Readable.from([content]) : content;
      const target = createWriteStream(contentFile(mail.id));
      target.write(`${mail.trace}\r\n`);
      await pipeline(source, target);
      await writeFile(`${envelopeFile(mail.id)}.new`, JSON.stringify(mail));
      await rename(`${envelopeFile(mail.id)}.new`, envelopeFile(mail.id));
    },
    read: (id) => createReadStream(contentFile(id)),
    async headersOf(mail) {
      const start = await readStart(contentFile(mail.id), MAX_HEADER_BYTES);
      const withoutTrace = start.slice(mail.trace.length).replace(/^\r?\n/, '');
      const end = /\r?\n\r?\n/.exec(withoutTrace);
      return `${withoutTrace.slice(0, end?.index ?? withoutTrace.length)}\r\n`;
    },
    async remove(id) {
      await rm(envelopeFile(id), { force: true });
      await rm(contentFile(id), { force: true });
    },
    unfinished: () =>
      readdirSync(directory)
        .filter((file) => file.endsWith('.json'))
        .map((file) => JSON.parse(readFileSync(join(directory, file), 'utf8')) as SpooledMail),
  };
}

/** latin1 maps every byte of an 8-bit header to one character. */
async function readStart(file: string, bytes: number): Promise<string> {
  const handle = await open(file);
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0);
    return buffer.subarray(0, bytesRead).toString('latin1');
  } finally {
    await handle.close();
  }
}
