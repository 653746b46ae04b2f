import type { Readable } from 'node:stream';
import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { httpStatusOf, StorageError } from './storage-error.ts';

/** A range of an object's bytes, and the object's total size. */
export interface ObjectRange {
  bytes: Buffer;
  totalBytes: number;
}

/**
 * Reads at most `maxBytes`, beginning at `start`.
 *
 * @throws the SDK's error, or StorageError `unavailable` if the server does not support ranges.
 */
export function readRange(
  client: S3Client,
  target: { Bucket: string; Key: string },
  start: number,
  maxBytes: number,
): Promise<ObjectRange> {
  return fetchRange(client, target, start, maxBytes).catch((error: unknown) => {
    // No range is satisfiable in an empty object (RFC 9110 section 14.1.1).
    if (start === 0 && httpStatusOf(error) === 416) return { bytes: Buffer.alloc(0), totalBytes: 0 };
    throw error;
  });
}

/** Reads the range into one buffer. Reads the response to its end, which lets the SDK reuse the connection. */
async function fetchRange(
  client: S3Client,
  target: { Bucket: string; Key: string },
  start: number,
  maxBytes: number,
): Promise<ObjectRange> {
  const {
    Body,
    ContentLength = maxBytes,
    ContentRange,
  } = await client.send(new GetObjectCommand({ ...target, Range: `bytes=${start}-${start + maxBytes - 1}` }));
  if (start > 0 && !ContentRange)
    throw new StorageError('unavailable', `Storage returned all of ${target.Key} instead of a range`);
  const stream = Body as Readable;
  // `bytes 0-99/1234`, RFC 9110 section 14.4.
  const totalBytes = ContentRange ? Number(ContentRange.split('/')[1]) : ContentLength;
  // Some servers accept a range of an empty object and never end the response.
  if (totalBytes === 0) stream.destroy();
  let bytes: Buffer = Buffer.alloc(0);
  let length = 0;
  for await (const chunk of totalBytes === 0 ? [] : (stream as AsyncIterable<Buffer>)) {
    const expected = Math.min(ContentLength, maxBytes);
    // A short range arrives as one chunk, which needs no copy.
    if (length === 0) bytes = chunk.length === expected ? chunk : Buffer.allocUnsafeSlow(expected);
    length += chunk === bytes ? expected : chunk.copy(bytes, length);
    // The server does not support ranges: leaving the loop destroys the stream and with it the connection.
    if (length === bytes.length && !ContentRange) break;
  }
  return { bytes: bytes.subarray(0, length), totalBytes };
}
