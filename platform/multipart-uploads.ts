import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { StorageError, withStorageErrors } from './storage-error.ts';

/** An uploaded part: its number, starting at 1, and its ETag. */
export interface UploadedPart {
  number: number;
  etag: string;
}

/**
 * Uploads objects in parts, from any process that knows the upload id. An upload has at most 10,000 parts of equal size
 * (some servers require it), at least 5 MiB each; only the last part may be smaller. Uploading a part number again
 * replaces the part.
 */
export interface MultipartUploads {
  create(key: string, contentType: string): Promise<string>;
  /** @throws StorageError `missing` if the upload is completed, aborted, or expired on the server. */
  uploadPart(key: string, uploadId: string, number: number, bytes: Uint8Array): Promise<UploadedPart>;
  /** @throws StorageError `missing` as in {@link uploadPart}; `mismatched` if a part has changed since it was uploaded. */
  complete(key: string, uploadId: string, parts: readonly UploadedPart[]): Promise<void>;
  /** Deletes the parts. Aborting a finished upload succeeds. */
  abort(key: string, uploadId: string): Promise<void>;
}

export function createMultipartUploads(client: S3Client, Bucket: string): MultipartUploads {
  return {
    create: (Key, ContentType) =>
      withStorageErrors('start the upload of', Key, async () => {
        const { UploadId } = await client.send(
          new CreateMultipartUploadCommand({ Bucket, Key, ContentType }),
        );
        if (!UploadId) throw new StorageError('unavailable', `Storage returned no upload id for ${Key}`);
        return UploadId;
      }),

    uploadPart: (Key, UploadId, number, bytes) =>
      withStorageErrors('upload a part of', Key, async () => {
        const part = { Bucket, Key, UploadId, PartNumber: number, Body: bytes };
        const { ETag } = await client.send(new UploadPartCommand(part));
        if (!ETag)
          throw new StorageError('unavailable', `Storage returned no ETag for part ${number} of ${Key}`);
        return { number, etag: ETag };
      }),

    complete: (Key, UploadId, parts) =>
      withStorageErrors('complete', Key, async () => {
        const MultipartUpload = {
          Parts: parts.map(({ number, etag }) => ({ PartNumber: number, ETag: etag })),
        };
        await client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload }));
      }),

    async abort(Key, UploadId) {
      try {
        const abort = new AbortMultipartUploadCommand({ Bucket, Key, UploadId });
        await withStorageErrors('abort', Key, () => client.send(abort));
      } catch (error) {
        if (!(error instanceof StorageError && error.failure === 'missing')) throw error;
      }
    },
  };
}
