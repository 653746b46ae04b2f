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
  /** First line this relay put before the mail. */
  trace: string;
  recipients: SpooledRecipient[];
  /** Shown in the mail UI; false for reports this relay wrote itself for the service. */
  shown: boolean;
}

export interface MailSpool {
  /** Once this resolves the mail survives the end of the process. */
  add(mail: SpooledMail, content: Readable | Buffer): Promise<void>;
  read(id: string): Readable;
  /** The header block as it arrived. */
  headersOf(mail: SpooledMail): Promise<string>;
  remove(id: string): Promise<void>;
  /** What an earlier run accepted and did not finish. */
  unfinished(): SpooledMail[];
}

const MAX_HEADER_BYTES = 64 * 1024;

/** An MTA that answered 250 keeps the mail: a file each, and one with its envelope that makes it valid. */
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

/** latin1 keeps every byte of an 8-bit header as one character. */
async function readStart(file: string, bytes: number): Promise<string> {
  const handle = await open(file);
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0);
    return buffer.subarray(0, bytesRead).toString('latin1');
  } finally {
    await handle.close();
  }
}
