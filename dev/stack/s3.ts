import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import S3rver from '@20minutes/s3rver';
import { findRefusal } from './host-guard.ts';
import { normalizeBucketPath, rejectUnsigned, verifyPresignedLinks } from './s3-signatures.ts';
import { abortUploads } from './s3-uploads.ts';

export interface S3Options {
  directory: string;
  port: number;
  bucket: string;
}

export interface S3Server {
  /** Settings of `platform/storage.ts`. */
  readonly environment: {
    S3_ENDPOINT: string;
    S3_BUCKET: string;
    S3_REGION: string;
    S3_ACCESS_KEY_ID: string;
    S3_SECRET_ACCESS_KEY: string;
  };
  /** Also closes open connections, so that a restart gets the port immediately. */
  stop(): Promise<void>;
}

/** Starts an S3 server inside this process, on 127.0.0.1, that keeps its objects in `directory`. */
export async function startS3({ directory, port, bucket }: S3Options): Promise<S3Server> {
  mkdirSync(directory, { recursive: true });
  const s3rver = new S3rver({
    directory,
    silent: true,
    // Bucket names are not part of the host name.
    vhostBuckets: false,
    configureBuckets: [{ name: bucket }],
  });
  s3rver.middleware.splice(
    -1,
    0,
    rejectUnsigned,
    verifyPresignedLinks,
    normalizeBucketPath,
    abortUploads(directory),
  );
  // It would otherwise handle the uncaught errors of the whole process.
  s3rver.logger.exceptions.unhandle();
  await s3rver.configureBuckets();
  const serve = s3rver.callback();
  // Its key is public, so that a signature alone does not keep other websites out.
  const server = createServer((incoming, response) => {
    const refusal = findRefusal(incoming, (server.address() as AddressInfo).port);
    if (refusal) response.writeHead(refusal.status).end(refusal.reason);
    else serve(incoming, response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    environment: {
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_BUCKET: bucket,
      S3_REGION: 'us-east-1',
      // s3rver accepts only this key pair.
      S3_ACCESS_KEY_ID: 'S3RVER',
      S3_SECRET_ACCESS_KEY: 'S3RVER',
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => {
          s3rver.logger.close();
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
