import type { Readable } from 'node:stream';
import { usageError } from '../cli-error.ts';

/** Of a body (the service takes as much). */
const MAX_BYTES = 5 * 1024 * 1024;

/** @throws CliError for more than 5 MiB, and for what is not UTF-8. */
export async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_BYTES)
      throw usageError('The standard input has more than 5 MiB.', 'Attach a file instead.');
    chunks.push(bytes);
  }
  return decode(Buffer.concat(chunks), 'The standard input');
}

export function decode(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`${what} is not UTF-8.`, 'Convert it first, for example with iconv.');
  }
}
