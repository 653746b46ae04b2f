import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '../../platform/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** All fields are optional, and so is the body. */
    bodyMayBeEmpty?: true;
  }
}

/** Rejects invalid bytes. Replacing them with U+FFFD would store and send text that the client did not write. */
const UTF_8_DECODER = new TextDecoder('utf-8', { fatal: true });

/** Reads bodies as JSON in UTF-8, treats an empty body as missing and rejects all other content types. */
export function installJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) => {
      if (body.length === 0) return undefined;
      rejectOtherEncodings(request);
      return parse(decode(body));
    },
  );
  app.addHook('preValidation', async (request) => {
    if (request.routeOptions.config.bodyMayBeEmpty) request.body ??= {};
  });
}

function rejectOtherEncodings({ headers }: FastifyRequest): void {
  const [, charset = 'utf-8'] = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(headers['content-type'] ?? '') ?? [];
  if (!/^utf-?8$/i.test(charset))
    throw unsupportedMediaType(`The charset of the body is ${charset.slice(0, 64)}.`, 'Send JSON in UTF-8.');
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() !== 'identity')
    throw unsupportedMediaType(
      `The content encoding of the body is ${encoding.slice(0, 64)}.`,
      'Send the body unencoded.',
    );
}

function decode(body: Buffer): string {
  try {
    return UTF_8_DECODER.decode(body);
  } catch {
    throw malformedJson('The body is not valid UTF-8.');
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformedJson('The body is not a JSON document.');
  }
}

function malformedJson(detail: string): AppError {
  return new AppError('malformed_json', {
    detail,
    fix: 'Send one JSON value in UTF-8, or no body if the operation does not accept one.',
  });
}

function unsupportedMediaType(detail: string, fix: string): AppError {
  return new AppError('unsupported_media_type', { detail, fix });
}
