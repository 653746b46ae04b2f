import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findFreePort } from '../../dev/stack/ports.ts';
import { type S3Options, type S3Server, startS3 } from '../../dev/stack/s3.ts';
import { buildContentDisposition } from '../../platform/content-disposition.ts';
import { createStorage, type Storage } from '../../platform/storage.ts';
import { findVersitygw, startVersitygw } from '../support/versitygw.ts';

const MEBIBYTE = 1024 * 1024;
const gateway = findVersitygw();

/** The embedded server of `npm start`, and the gateway of docker-compose.yml where it is installed. */
const SERVERS: { name: string; start: ((options: S3Options) => Promise<S3Server>) | undefined }[] = [
  { name: 's3rver', start: startS3 },
  {
    name: 'versitygw',
    start: gateway === undefined ? undefined : (options) => startVersitygw(gateway, options),
  },
];

for (const { name, start } of SERVERS) {
  if (start) describe(`storage on ${name}`, () => defineStorageTests(start));
  else describe.skip(`storage on ${name}`, () => defineStorageTests(startS3));
}

function defineStorageTests(start: (options: S3Options) => Promise<S3Server>): void {
  let folder: string;
  let server: S3Server;
  let storage: Storage;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'storage-test-'));
    server = await start({ directory: folder, port: await findFreePort(), bucket: 'given' });
    storage = createStorage({ ...server.environment, S3_BUCKET: 'made-here', S3_FORCE_PATH_STYLE: true });
    await storage.ensureBucket();
  });

  afterAll(async () => {
    storage.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('creates its bucket once and responds to pings', async () => {
    await storage.ensureBucket();
    await storage.ping();
  });

  test.each([0, 1, 5 * MEBIBYTE, 12 * MEBIBYTE + 1])('streams %i bytes in and out', async (sizeBytes) => {
    const bytes = randomBytes(sizeBytes);
    const stored = await storage.putStream(`stream/${sizeBytes}`, Readable.from(splitIntoChunks(bytes)), {
      contentType: 'message/rfc822',
    });
    expect(stored).toEqual({ sizeBytes, sha256: createHash('sha256').update(bytes).digest() });
    const read = await buffer(await storage.getStream(`stream/${sizeBytes}`));
    expect(read.equals(bytes)).toBe(true);
  });

  test('reads ranges of an object and returns its size', async () => {
    const bytes = randomBytes(1_000);
    await storage.putBytes('pieces/1', bytes, 'text/plain');
    expect(await storage.getRange('pieces/1', 0, 400)).toEqual({
      bytes: bytes.subarray(0, 400),
      totalBytes: 1_000,
    });
    expect(await storage.getRange('pieces/1', 800, 400)).toEqual({
      bytes: bytes.subarray(800),
      totalBytes: 1_000,
    });
    await storage.putBytes('pieces/empty', Buffer.alloc(0), 'text/plain');
    expect(await storage.getRange('pieces/empty', 0, 400)).toEqual({ bytes: Buffer.alloc(0), totalBytes: 0 });
    await expect(storage.getRange('pieces/none', 0, 400)).rejects.toMatchObject({ failure: 'missing' });
    expect(await storage.sizeOf('pieces/1')).toBe(1_000);
    expect(await storage.sizeOf('pieces/none')).toBeUndefined();
  });

  test('uploads parts; the last upload of each part replaces earlier ones', async () => {
    const { multipartUploads } = storage;
    const parts = [randomBytes(5 * MEBIBYTE), randomBytes(5 * MEBIBYTE), randomBytes(10)];
    const uploadId = await multipartUploads.create('parts/1', 'application/zip');
    await multipartUploads.uploadPart('parts/1', uploadId, 2, randomBytes(5 * MEBIBYTE));
    const uploaded = [];
    for (const [index, bytes] of parts.entries())
      uploaded.push(await multipartUploads.uploadPart('parts/1', uploadId, index + 1, bytes));
    expect(await storage.sizeOf('parts/1')).toBeUndefined();
    await multipartUploads.complete('parts/1', uploadId, uploaded);
    const read = await buffer(await storage.getStream('parts/1'));
    expect(read.equals(Buffer.concat(parts))).toBe(true);
    // Some servers accept it again, as AWS does. Either way the object stays.
    await multipartUploads
      .complete('parts/1', uploadId, uploaded)
      .catch((error: unknown) => expect(error).toMatchObject({ failure: 'missing' }));
    expect(await storage.sizeOf('parts/1')).toBe(Buffer.concat(parts).length);
  });

  test('rejects parts of an aborted upload; aborting again succeeds', async () => {
    const { multipartUploads } = storage;
    const uploadId = await multipartUploads.create('parts/2', 'application/zip');
    const part = await multipartUploads.uploadPart('parts/2', uploadId, 1, randomBytes(10));
    await multipartUploads.abort('parts/2', uploadId);
    await multipartUploads.abort('parts/2', uploadId);
    await expect(multipartUploads.uploadPart('parts/2', uploadId, 2, randomBytes(10))).rejects.toMatchObject({
      failure: 'missing',
    });
    await expect(multipartUploads.complete('parts/2', uploadId, [part])).rejects.toMatchObject({
      failure: 'missing',
    });
    expect(await storage.sizeOf('parts/2')).toBeUndefined();
  });

  test('stores no object from a failing source and rethrows its error', async () => {
    const broken = Readable.from(
      (async function* () {
        yield randomBytes(7 * MEBIBYTE);
        throw new Error('sender disconnected');
      })(),
    );
    await expect(
      storage.putStream('broken', broken, { contentType: 'application/octet-stream' }),
    ).rejects.toThrow('sender disconnected');
    await expect(storage.getStream('broken')).rejects.toMatchObject({ failure: 'missing' });
  });

  test('fails the upload and destroys the source when the server is unreachable', async () => {
    const unreachable = createStorage({
      ...server.environment,
      S3_ENDPOINT: `http://127.0.0.1:${await findFreePort()}`,
      S3_FORCE_PATH_STYLE: true,
    });
    const endless = new Readable({
      read() {
        this.push(Buffer.alloc(MEBIBYTE));
      },
    });
    await expect(unreachable.putStream('k', endless, { contentType: 'text/plain' })).rejects.toMatchObject({
      name: 'StorageError',
      failure: 'unavailable',
    });
    expect(endless.destroyed).toBe(true);
    await expect(unreachable.ping()).rejects.toThrow('Storage could not ping');
    unreachable.close();
  });

  test('reads bytes up to a limit', async () => {
    await storage.putBytes('small', Buffer.from('hello'), 'text/plain');
    expect((await storage.getBytes('small', 5)).toString()).toBe('hello');
    await expect(storage.getBytes('small', 4)).rejects.toMatchObject({ failure: 'tooLarge' });
    await expect(storage.getBytes('absent', 4)).rejects.toMatchObject({ failure: 'missing' });
  });

  test('creates links that download under the given name and require the signature', async () => {
    await storage.putBytes('report', Buffer.from('%PDF'), 'application/octet-stream');
    const link = await storage.presignGet('report', {
      filename: 'Überblick "Q3".pdf',
      contentType: 'application/pdf',
      expiresInSeconds: 60,
    });
    const response = await fetch(link);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/pdf');
    expect(response.headers.get('content-disposition')).toBe(buildContentDisposition('Überblick "Q3".pdf'));
    expect(await response.text()).toBe('%PDF');
    const forged = await fetch(link.replace(/X-Amz-Signature=..../, 'X-Amz-Signature=0000'));
    expect(forged.status).toBe(403);
    await forged.body?.cancel();
  });

  test('creates links to the public endpoint, if configured', async () => {
    const publicStorage = createStorage({
      ...server.environment,
      S3_PUBLIC_ENDPOINT: 'https://files.example.com',
      S3_FORCE_PATH_STYLE: true,
    });
    const link = await publicStorage.presignGet('a', {
      filename: 'a',
      contentType: 'text/plain',
      expiresInSeconds: 9,
    });
    expect(new URL(link).origin).toBe('https://files.example.com');
    publicStorage.close();
  });

  test('deletes one, several and missing objects', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `many/${index}`);
    await Promise.all(keys.map((key) => storage.putBytes(key, Buffer.from(key), 'text/plain')));
    await storage.delete('many/0');
    await storage.deleteMany([...keys, 'never-there']);
    await expect(storage.getStream('many/19')).rejects.toMatchObject({ failure: 'missing' });
  });

  test('reports errors without credentials', async () => {
    const misconfigured = createStorage({
      ...server.environment,
      S3_SECRET_ACCESS_KEY: 'wrong-secret-key',
      S3_FORCE_PATH_STYLE: true,
    });
    const error = await misconfigured
      .putBytes('k', Buffer.from('x'), 'text/plain')
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ failure: 'unavailable' });
    expect(JSON.stringify({ ...(error as Error) }) + String(error)).not.toContain('wrong-secret-key');
    expect((error as Error).cause).toBeUndefined();
    misconfigured.close();
  });
}

test('stops deleting many objects when storage refuses', async () => {
  const requested = new Set<string | undefined>();
  const server = createServer((request, response) => {
    requested.add(request.url);
    response.writeHead(403).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const storage = createStorage({
    S3_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    S3_REGION: 'us-east-1',
    S3_BUCKET: 'refusing',
    S3_ACCESS_KEY_ID: 'key',
    S3_SECRET_ACCESS_KEY: 'secret',
    S3_FORCE_PATH_STYLE: true,
  });
  const keys = Array.from({ length: 100 }, (_, index) => `many/${index}`);
  await expect(storage.deleteMany(keys)).rejects.toMatchObject({ failure: 'unavailable' });
  // Those that had begun before the first failed.
  expect(requested.size).toBe(8);
  storage.close();
  server.close();
});

describe('buildContentDisposition', () => {
  test.each([
    ['plain.txt', `attachment; filename="plain.txt"; filename*=UTF-8''plain.txt`],
    ['€ rates.txt', `attachment; filename="_ rates.txt"; filename*=UTF-8''%E2%82%AC%20rates.txt`],
    ['../../etc/passwd', `attachment; filename=".._.._etc_passwd"; filename*=UTF-8''.._.._etc_passwd`],
    ['a\r\nSet-Cookie: x"', `attachment; filename="aSet-Cookie: x_"; filename*=UTF-8''aSet-Cookie%3A%20x%22`],
    ["it's (1)*", `attachment; filename="it's (1)*"; filename*=UTF-8''it%27s%20%281%29%2A`],
    ['\ud800', `attachment; filename="_"; filename*=UTF-8''%EF%BF%BD`],
    ['', `attachment; filename="attachment"; filename*=UTF-8''attachment`],
  ])('%j', (filename, expected) => {
    expect(buildContentDisposition(filename)).toBe(expected);
  });
});

function* splitIntoChunks(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}
