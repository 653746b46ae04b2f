import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { S3rverContext } from '@20minutes/s3rver';

/**
 * s3rver neither aborts a multipart upload nor knows that one has ended: it recreates the folder for any later part.
 * S3 returns `NoSuchUpload`, on which the service's export depends.
 */
export function abortUploads(directory: string) {
  return async (context: S3rverContext, next: () => Promise<unknown>): Promise<unknown> => {
    const { uploadId } = context.query;
    const [, bucket = ''] = context.path.split('/');
    if (uploadId === undefined || !/^[0-9a-f]{32}$/.test(uploadId) || !/^[a-z0-9.-]+$/.test(bucket))
      return next();
    const folder = join(directory, bucket, '._S3rver_uploads', uploadId);
    if (!existsSync(folder)) {
      context.status = 404;
      context.body = NO_SUCH_UPLOAD;
      return;
    }
    if (context.method !== 'DELETE') return next();
    await rm(folder, { recursive: true, force: true });
    context.status = 204;
  };
}

const NO_SUCH_UPLOAD = `<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>NoSuchUpload</Code><Message>The specified upload does not exist.</Message></Error>`;
