import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { StorageError, withStorageErrors } from './storage-error.ts';

/** A part that is there, by its number from 1 and what S3 calls it. */
export interface UploadedPart {
  number: number;
  etag: string;
}

/**
 * An object written over many calls, by any process that knows its upload. Parts are of one size, the last one smaller
 * (some servers demand it), 5 MiB at least, 10,000 at most; a number put again replaces what it was before.
 */
export interface MultipartUploads {
  create(key: string, contentType: string): Promise<string>;
  /** @throws StorageError `missing` where the upload is over: completed, aborted, or forgotten by the server. */
  uploadPart(key: string, uploadId: string, number: number, bytes: Uint8Array): Promise<UploadedPart>;
  /** @throws StorageError `missing` as `putPart`; `mismatched` where a part is not what it was when it was put. */
  complete(key: string, uploadId: string, parts: readonly UploadedPart[]): Promise<void>;
  /** Forgets the parts. Aborting what is over succeeds. */
  abort(key: string, uploadId: string): Promise<void>;
}

export function createMultipartUploads(client: S3Client, Bucket: string): MultipartUploads {
  return {
    create: (Key, ContentType) =>
      withStorageErrors('begin to write', Key, async () => {
        const { UploadId } = await client.send(
          new CreateMultipartUploadCommand({ Bucket, Key, ContentType }),
        );
        if (!UploadId) throw new StorageError('unavailable', `Storage gave no upload for ${Key}`);
        return UploadId;
      }),

    uploadPart: (Key, UploadId, number, bytes) =>
      withStorageErrors('put a part of', Key, async () => {
        const part = { Bucket, Key, UploadId, PartNumber: number, Body: bytes };
        const { ETag } = await client.send(new UploadPartCommand(part));
        if (!ETag) throw new StorageError('unavailable', `Storage gave no ETag for part ${number} of ${Key}`);
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
