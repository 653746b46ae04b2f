/** The package has no types. This declares only what the embedded stack uses. */
declare module '@20minutes/s3rver' {
  import type { IncomingHttpHeaders, RequestListener } from 'node:http';

  interface S3rverOptions {
    silent?: boolean;
    directory: string;
    vhostBuckets?: boolean;
    configureBuckets?: { name: string }[];
  }

  /** Koa's context. */
  export interface S3rverContext {
    readonly method: string;
    readonly path: string;
    readonly headers: IncomingHttpHeaders;
    query: Record<string, string>;
    status: number;
    body: unknown;
    mountPath: string;
    readonly state: { vhost: boolean; account?: unknown };
  }

  export default class S3rver {
    constructor(options: S3rverOptions);
    /** In order; the router is last. */
    readonly middleware: ((context: S3rverContext, next: () => Promise<unknown>) => Promise<unknown>)[];
    readonly logger: { exceptions: { unhandle(): void }; close(): void };
    configureBuckets(): Promise<unknown>;
    callback(): RequestListener;
  }
}

declare module '@20minutes/s3rver/lib/models/account.js' {
  const account: { DUMMY_ACCOUNT: { accessKeys: Map<string, string> } };
  export default account;
}

declare module '@20minutes/s3rver/lib/signature/v4.js' {
  import type { IncomingHttpHeaders } from 'node:http';

  interface SignedRequest {
    accessKeyId: string;
    credential: { date: string; region: string; service: string; termination: string };
    time: string;
    signedHeaders: string[];
  }

  const v4: {
    /** Throws if the link has expired or is incomplete. */
    parseQuery(query: Record<string, string>): SignedRequest;
    getStringToSign(
      canonical: {
        method: string;
        headers: IncomingHttpHeaders;
        timestamp: string;
        uri: string;
        querystring: string;
      },
      request: SignedRequest,
    ): string;
    getSigningKey(secret: string, date: string, region: string, service: string): Buffer;
  };
  export default v4;
}
