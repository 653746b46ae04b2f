import { Buffer } from 'node:buffer';
import type { Call } from './test-app.ts';

export interface FormPart {
  name?: string;
  /** None: a field and not a file. */
  filename?: string;
  contentType?: string;
  content: string | Buffer;
}

const BOUNDARY = 'form-of-a-test';

/** A multipart/form-data body, written out so that a test can cut it or write it wrongly. */
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
