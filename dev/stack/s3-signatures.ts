import { createHmac } from 'node:crypto';
import type { S3rverContext } from '@20minutes/s3rver';
import DUMMY from '@20minutes/s3rver/lib/models/account.js';
import v4 from '@20minutes/s3rver/lib/signature/v4.js';

type Next = () => Promise<unknown>;

/**
 * The SDK asks for a bucket as `/bucket/` and signs that; s3rver computes the signature over `/bucket` and refuses.
 * Told that the bucket came from the host name and the path is `/`, it puts together what was signed.
 */
export function normalizeBucketPath(context: S3rverContext, next: Next): Promise<unknown> {
  if (/^\/[^/]+\/$/.test(context.path)) {
    context.mountPath = '/';
    context.state.vhost = true;
  }
  return next();
}

/** s3rver shows every object to whoever names it; a link cut down to its path must not work. */
export function rejectUnsigned(context: S3rverContext, next: Next): Promise<unknown> {
  if (context.headers.authorization !== undefined || 'X-Amz-Signature' in context.query) return next();
  context.status = 403;
  return Promise.resolve();
}

/**
 * s3rver leaves `!'()*` of a query as they are when it computes the signature, where AWS escapes them; each
 * `filename*=UTF-8''…` has some. A presigned link is therefore verified here and handed on as verified; one that does
 * not match goes on unchanged, for s3rver to refuse.
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
