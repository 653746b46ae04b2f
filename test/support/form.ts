import { Buffer } from 'node:buffer';
import type { Call } from './test-app.ts';

export interface FormPart {
  name?: string;
  /** Unset: a field instead of a file. */
  filename?: string;
  contentType?: string;
  content: string | Buffer;
}

const BOUNDARY = 'form-of-a-test';

/** A multipart/form-data body, built by hand so that tests can truncate or corrupt it. */
export function formBytes(parts: FormPart[]): Buffer {
  const pieces = parts.flatMap(({ name = 'file', filename, contentType, content }) => [
    Buffer.from(
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}\r\n` +
        `${contentType === undefined ? '' : `Content-Type: ${contentType}\r\n`}\r\n`,
    ),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

/** The request of an upload. */
export function formCall(
  parts: FormPart[],
  bytes = formBytes(parts),
): Pick<Call, 'method' | 'raw' | 'headers'> {
  return {
    method: 'POST',
    raw: bytes,
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
  };
}
