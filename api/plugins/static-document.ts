import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
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
/** The highest takes ten times as long for a few percent. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

/** Content that is the same for every caller as long as the process runs. */
export interface StaticContent {
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    headers: { type: string; cache: string },
  ): Promise<FastifyReply>;
}

/** Answers with an entity tag, and compressed. The content is compressed once, when it is first sent. */
export function createStaticContent(content: Buffer): StaticContent {
  let made: Promise<Representations> | undefined;
  return {
    async send({ headers }, reply, { type, cache }) {
      made ??= represent(content);
      const representations = await made;
      const { etag } = representations;
      const varies = [reply.getHeader('vary'), 'accept-encoding'].filter(Boolean).join(', ');
      reply.header('etag', etag).header('cache-control', cache).header('vary', varies);
      if (reply.statusCode === 200 && matches(headers['if-none-match'], etag)) return reply.code(304).send();
      const encoding = chooseEncoding(headers['accept-encoding']);
      if (encoding !== 'identity') reply.header('content-encoding', encoding);
      return reply.type(type).send(representations[encoding]);
    },
  };
}

/** Answers with a JSON document, which is made at the first request. */
export function createStaticDocument(read: () => object) {
  let content: StaticContent | undefined;
  return async (request: FastifyRequest, reply: FastifyReply) => {
    content ??= createStaticContent(Buffer.from(JSON.stringify(read())));
    return content.send(request, reply, { type: 'application/json; charset=utf-8', cache: CACHE });
  };
}

async function represent(identity: Buffer): Promise<Representations> {
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(identity, BROTLI),
    promisify(gzip)(identity),
  ]);
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
