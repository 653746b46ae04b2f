import type { Readable } from 'node:stream';
import { GetObjectCommand, S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import type { Config } from './config.ts';

/** Messages that Amazon SES received and stored in the operator's S3 buckets. */
export interface SesObjects {
  /**
   * The caller reads the stream to its end or destroys it.
   *
   * @throws SesObjectError
   */
  open(bucket: string, key: string): Promise<Readable>;
  close(): void;
}

/** The message contains the object and the response, never a credential. */
export class SesObjectError extends Error {
  readonly failure: 'encrypted' | 'unavailable';

  constructor(failure: SesObjectError['failure'], message: string) {
    super(message);
    this.name = 'SesObjectError';
    this.failure = failure;
  }
}

export type SesObjectsConfig = Pick<
  Config,
  'SES_REGION' | 'SES_INBOUND_S3_ENDPOINT' | 'SES_ACCESS_KEY_ID' | 'SES_SECRET_ACCESS_KEY'
>;

const CONNECT_TIMEOUT_MS = 5_000;
/** Maximum silence on the connection. */
const IDLE_TIMEOUT_MS = 30_000;

/** Uses the credentials and region of SES. S3 redirects to the region of a bucket. */
export function createSesObjects(config: SesObjectsConfig): SesObjects {
  const { SES_ACCESS_KEY_ID: accessKeyId, SES_SECRET_ACCESS_KEY: secretAccessKey } = config;
  const client = new S3Client({
    region: config.SES_REGION,
    followRegionRedirects: true,
    ...(config.SES_INBOUND_S3_ENDPOINT
      ? { endpoint: config.SES_INBOUND_S3_ENDPOINT, forcePathStyle: true }
      : {}),
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: IDLE_TIMEOUT_MS },
  });
  return {
    async open(Bucket, Key) {
      const { Body, Metadata } = await client
        .send(new GetObjectCommand({ Bucket, Key }))
        .catch((error: unknown) => {
          throw new SesObjectError('unavailable', describe(error, Bucket, Key));
        });
      const content = Body as Readable;
      // The S3 encryption client sets this field. Decrypting requires a key from the operator's KMS.
      if (Metadata?.['x-amz-key-v2'] === undefined) return content;
      content.destroy();
      throw new SesObjectError('encrypted', `${Key} in ${Bucket} is encrypted by SES`);
    },
    close: () => client.destroy(),
  };
}

function describe(error: unknown, bucket: string, key: string): string {
  const status = error instanceof S3ServiceException ? ` (${error.$metadata.httpStatusCode})` : '';
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown error';
  return `S3 could not get ${key} from ${bucket}${status}: ${reason}`;
}
