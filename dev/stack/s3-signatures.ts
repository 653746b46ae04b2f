import { createHmac } from 'node:crypto';
import type { S3rverContext } from '@20minutes/s3rver';
import DUMMY from '@20minutes/s3rver/lib/models/account.js';
import v4 from '@20minutes/s3rver/lib/signature/v4.js';

type Next = () => Promise<unknown>;

/**
 * The SDK requests and signs a bucket as `/bucket/`, while s3rver verifies the signature over `/bucket` and rejects it.
 * With the bucket given as a virtual host and `/` as the path, s3rver reconstructs what was signed.
 */
export function normalizeBucketPath(context: S3rverContext, next: Next): Promise<unknown> {
  if (/^\/[^/]+\/$/.test(context.path)) {
    context.mountPath = '/';
    context.state.vhost = true;
  }
  return next();
}

/** s3rver serves objects without a signature, but a link without its query must not work. */
export function rejectUnsigned(context: S3rverContext, next: Next): Promise<unknown> {
  if (context.headers.authorization !== undefined || 'X-Amz-Signature' in context.query) return next();
  context.status = 403;
  return Promise.resolve();
}

/**
 * s3rver does not escape `!'()*` in a query when it computes the signature, unlike AWS; every `filename*=UTF-8''…` has
 * some. Presigned links are therefore verified here and passed on as verified. One that does not match is passed on
 * unchanged, and s3rver rejects it.
 */
export function verifyPresignedLinks(context: S3rverContext, next: Next): Promise<unknown> {
  if (!('X-Amz-Signature' in context.query)) return next();
  const request = v4.parseQuery(context.query);
  const { date, region, service } = request.credential;
  const { 'X-Amz-Signature': given, ...signed } = context.query;
  const text = v4.getStringToSign(
    {
      method: context.method,
      headers: context.headers,
      timestamp: request.time,
      uri: context.path,
      querystring: canonicalQuery(signed),
    },
    request,
  );
  const secret = DUMMY.DUMMY_ACCOUNT.accessKeys.get(request.accessKeyId) ?? '';
  const key = v4.getSigningKey(secret, date, region, service);
  if (createHmac('sha256', key).update(text).digest('hex') === given) {
    context.state.account = DUMMY.DUMMY_ACCOUNT;
    context.query = Object.fromEntries(Object.entries(signed).filter(([name]) => !name.startsWith('X-Amz-')));
  }
  return next();
}

function canonicalQuery(query: Record<string, string>): string {
  return Object.entries(query)
    .map(([name, value]) => `${escape3986(name)}=${escape3986(value)}`)
    .sort()
    .join('&');
}

function escape3986(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
