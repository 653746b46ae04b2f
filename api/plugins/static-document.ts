import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

interface Representations {
  etag: string;
  identity: Buffer;
  br: Buffer;
  gzip: Buffer;
}

/** Clients ask each time, and get 304 until the service is upgraded. */
const CACHE = 'public, no-cache';
const ENCODINGS = ['br', 'gzip'] as const;

/**
 * Answers with a JSON document that is the same for every caller as long as the process runs: with an entity tag, and
 * compressed. It is made and compressed once, at the first request.
 */
export function createStaticDocument(read: () => object) {
  let made: Promise<Representations> | undefined;
  return async ({ headers }: FastifyRequest, reply: FastifyReply) => {
    made ??= represent(JSON.stringify(read()));
    const document = await made;
    reply.header('etag', document.etag).header('cache-control', CACHE).header('vary', 'accept-encoding');
    if (matches(headers['if-none-match'], document.etag)) return reply.code(304).send();
    const encoding = chooseEncoding(headers['accept-encoding']);
    if (encoding !== 'identity') reply.header('content-encoding', encoding);
    return reply.type('application/json; charset=utf-8').send(document[encoding]);
  };
}

async function represent(json: string): Promise<Representations> {
  const identity = Buffer.from(json);
  const [br, zipped] = await Promise.all([promisify(brotliCompress)(identity), promisify(gzip)(identity)]);
  // Weak: the representations have the same meaning, not the same bytes.
  const etag = `W/"${createHash('sha256').update(identity).digest('base64url')}"`;
  return { etag, identity, br, gzip: zipped };
}

/** `If-None-Match` compares weakly (RFC 9110, section 13.1.2). */
function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  const tags = header.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes('*') || tags.includes(etag.replace(/^W\//, ''));
}

/** The best compression that the client accepts (RFC 9110, section 12.5.3). */
function chooseEncoding(header: string | undefined): (typeof ENCODINGS)[number] | 'identity' {
  const weights = new Map(
    (header ?? '').split(',').map((part) => {
      const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
      const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      return [name, quality === undefined ? 1 : Number(quality)];
    }),
  );
  const weightOf = (name: string) => weights.get(name) ?? weights.get('*') ?? 0;
  const best = ENCODINGS.reduce((chosen, name) => (weightOf(name) > weightOf(chosen) ? name : chosen));
  return weightOf(best) > 0 ? best : 'identity';
}
