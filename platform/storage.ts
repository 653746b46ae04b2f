import { createHash } from 'node:crypto';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { mapConcurrently } from './concurrency/map-concurrently.ts';
import type { Config } from './config.ts';
import { buildContentDisposition } from './content-disposition.ts';
import { createMultipartUploads, type MultipartUploads } from './multipart-uploads.ts';
import { httpStatusOf, StorageError, withStorageErrors } from './storage-error.ts';
import { type ObjectRange, readRange } from './storage-range.ts';

export interface StoredObject {
  sizeBytes: number;
  /** SHA-256 of the bytes. */
  sha256: Buffer;
}

export interface ObjectPage {
  objects: { key: string; lastModified: Date }[];
  isLast: boolean;
}

export interface DownloadOptions {
  filename: string;
  contentType: string;
  /** At most seven days in S3. */
  expiresInSeconds: number;
}

/** The objects of one S3 bucket. A resolved put is durable; a rejected one may or may not have stored the object. */
export interface Storage {
  /** Streams any length in parts, with at most 10 MiB in memory. If the source fails, no object is stored. */
  putStream(key: string, source: Readable, options: { contentType: string }): Promise<StoredObject>;
  putBytes(key: string, bytes: Uint8Array, contentType: string): Promise<StoredObject>;
  /** The caller must read the stream to its end or destroy it, because it holds a connection until then. */
  getStream(key: string): Promise<Readable>;
  /** @throws StorageError `tooLarge` as soon as more than `maxBytes` have been read. */
  getBytes(key: string, maxBytes: number): Promise<Buffer>;
  /** Reads at most `maxBytes` from `start`, which is within the object or 0. @throws StorageError `missing`. */
  getRange(key: string, start: number, maxBytes: number): Promise<ObjectRange>;
  /** Returns the object's size in bytes; undefined if it does not exist. */
  sizeOf(key: string): Promise<number | undefined>;
  readonly multipartUploads: MultipartUploads;
  /** Creates a link that works without a credential until it expires. Browsers save it as `filename`, never inline. */
  presignGet(key: string, link: DownloadOptions): Promise<string>;
  /** Deleting a missing object succeeds. */
  delete(key: string): Promise<void>;
  /**
   * Lists up to 1,000 objects whose keys start with the prefix, in key order.
   *
   * @param after continue after this key; undefined for the first page.
   */
  listPage(prefix: string, after?: string): Promise<ObjectPage>;
  /** Tries to delete all objects, up to eight failures, and then throws the first failure. */
  deleteMany(keys: readonly string[]): Promise<void>;
  /** @throws StorageError if the bucket does not respond. */
  ping(): Promise<void>;
  ensureBucket(): Promise<void>;
  close(): void;
}

type StorageConfig = Pick<
  Config,
  | 'S3_ENDPOINT'
  | 'S3_PUBLIC_ENDPOINT'
  | 'S3_REGION'
  | 'S3_BUCKET'
  | 'S3_ACCESS_KEY_ID'
  | 'S3_SECRET_ACCESS_KEY'
  | 'S3_FORCE_PATH_STYLE'
>;

const PART_SIZE_BYTES = 5 * 1024 * 1024;
const MAX_CONCURRENT_PARTS = 2;
const MAX_CONCURRENT_DELETES = 8;
const CONNECT_TIMEOUT_MS = 5_000;
/** Maximum silence on the connection, in either direction. */
const IDLE_TIMEOUT_MS = 30_000;

export function createStorage(config: StorageConfig): Storage {
  const client = createClient(config, config.S3_ENDPOINT);
  // A link is signed for the host that its user connects to, which may differ from this process's host.
  const publicClient = config.S3_PUBLIC_ENDPOINT ? createClient(config, config.S3_PUBLIC_ENDPOINT) : client;
  const Bucket = config.S3_BUCKET;

  async function deleteOne(Key: string): Promise<void> {
    await withStorageErrors('delete', Key, () => client.send(new DeleteObjectCommand({ Bucket, Key })));
  }

  async function getStream(Key: string): Promise<Readable> {
    const { Body } = await withStorageErrors('get', Key, () =>
      client.send(new GetObjectCommand({ Bucket, Key })),
    );
    return Body as Readable;
  }

  return {
    putStream: (key, source, { contentType }) =>
      withStorageErrors('put', key, () =>
        uploadStream(client, { Bucket, Key: key, ContentType: contentType }, source),
      ),
    async putBytes(key, bytes, contentType) {
      const put = new PutObjectCommand({ Bucket, Key: key, Body: bytes, ContentType: contentType });
      await withStorageErrors('put', key, () => client.send(put));
      return { sizeBytes: bytes.byteLength, sha256: createHash('sha256').update(bytes).digest() };
    },
    getStream,
    async getBytes(key, maxBytes) {
      const stream = await getStream(key);
      return withStorageErrors('get', key, () => readAtMost(stream, key, maxBytes));
    },
    getRange: (key, start, maxBytes) =>
      withStorageErrors('get', key, () => readRange(client, { Bucket, Key: key }, start, maxBytes)),
    async sizeOf(key) {
      try {
        const head = new HeadObjectCommand({ Bucket, Key: key });
        return (await withStorageErrors('read the size of', key, () => client.send(head))).ContentLength;
      } catch (error) {
        if (error instanceof StorageError && error.failure === 'missing') return undefined;
        throw error;
      }
    },
    multipartUploads: createMultipartUploads(client, Bucket),
    presignGet(key, { filename, contentType, expiresInSeconds }) {
      const get = new GetObjectCommand({
        Bucket,
        Key: key,
        ResponseContentDisposition: buildContentDisposition(filename),
        ResponseContentType: contentType,
      });
      return withStorageErrors('presign', key, () =>
        getSignedUrl(publicClient, get, { expiresIn: expiresInSeconds }),
      );
    },
    delete: deleteOne,
    listPage: (prefix, after) =>
      withStorageErrors('list', prefix, () => listPage(client, { Bucket, prefix, after })),
    deleteMany: (keys) => deleteConcurrently(keys, deleteOne),
    ping: () => withStorageErrors('ping', Bucket, () => headBucket(client, Bucket)),
    ensureBucket: () => withStorageErrors('create bucket', Bucket, () => createBucket(client, Bucket)),
    close() {
      client.destroy();
      publicClient.destroy();
    },
  };
}

function createClient(config: StorageConfig, endpoint: string | undefined): S3Client {
  const { S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = config;
  return new S3Client({
    region: config.S3_REGION,
    forcePathStyle: config.S3_FORCE_PATH_STYLE,
    ...(endpoint ? { endpoint } : {}),
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
    // Some S3 servers do not support the CRC trailers that the SDK adds by default. TLS or loopback protects the data.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: IDLE_TIMEOUT_MS },
  });
}

async function uploadStream(
  client: S3Client,
  target: { Bucket: string; Key: string; ContentType: string },
  source: Readable,
): Promise<StoredObject> {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      sizeBytes += chunk.byteLength;
      done(null, chunk);
    },
  });
  const upload = new Upload({
    client,
    params: { ...target, Body: meter },
    partSize: PART_SIZE_BYTES,
    queueSize: MAX_CONCURRENT_PARTS,
  });
  const stored = upload.done().catch((error: unknown) => {
    // Nothing reads the stream any more. Destroy it, or the sender waits forever.
    meter.destroy(error instanceof Error ? error : new Error('The upload failed'));
    throw error;
  });
  // Both reject when either fails. allSettled waits until the parts of a failed upload are cleaned up.
  const [sent, read] = await Promise.allSettled([stored, pipeline(source, meter)]);
  if (sent.status === 'rejected') throw sent.reason;
  if (read.status === 'rejected') throw read.reason;
  return { sizeBytes, sha256: hash.digest() };
}

async function readAtMost(stream: Readable, key: string, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    sizeBytes += chunk.byteLength;
    // Leaving the loop destroys the stream and with it the connection.
    if (sizeBytes > maxBytes)
      throw new StorageError('tooLarge', `Object ${key} is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, sizeBytes);
}

async function listPage(
  client: S3Client,
  { Bucket, prefix, after }: { Bucket: string; prefix: string; after: string | undefined },
): Promise<ObjectPage> {
  const list = new ListObjectsV2Command({ Bucket, Prefix: prefix, ...(after ? { StartAfter: after } : {}) });
  const { Contents = [], IsTruncated = false } = await client.send(list);
  return {
    objects: Contents.flatMap(({ Key, LastModified }) =>
      Key !== undefined && LastModified ? [{ key: Key, lastModified: LastModified }] : [],
    ),
    isLast: !IsTruncated,
  };
}

/**
 * One request per object, because some S3 servers reject `DeleteObjects`. Stops when more fail than succeed, or as many as there
 * are requests at a time: storage is probably down, and each further request would wait for its timeouts of 99 s.
 */
async function deleteConcurrently(
  keys: readonly string[],
  deleteOne: (key: string) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  let deleted = 0;
  await mapConcurrently(keys, MAX_CONCURRENT_DELETES, async (key) => {
    if (failures.length > Math.min(deleted, MAX_CONCURRENT_DELETES - 1)) return;
    await deleteOne(key).then(
      () => {
        deleted += 1;
      },
      (error: unknown) => failures.push(error),
    );
  });
  if (failures.length > 0) throw failures[0];
}

async function headBucket(client: S3Client, Bucket: string): Promise<void> {
  await client.send(new HeadBucketCommand({ Bucket }));
}

async function createBucket(client: S3Client, Bucket: string): Promise<void> {
  try {
    await headBucket(client, Bucket);
  } catch (error) {
    if (httpStatusOf(error) !== 404) throw error;
    await client.send(new CreateBucketCommand({ Bucket })).catch((failure: unknown) => {
      // Another process has created it in the meantime.
      if (httpStatusOf(failure) !== 409) throw failure;
    });
  }
}
