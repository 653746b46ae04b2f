import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type TObject, Type } from 'typebox';
import type { IfMatch } from '../../domain/drafts/draft-precondition.ts';
import { invalid } from '../../platform/errors.ts';
import { text } from '../schemas.ts';

/** Headers of an operation that honors `If-Match`. */
export const IfMatchHeaders = Type.Object({
  'if-match': Type.Optional(
    text(1_024, {
      description:
        'The `ETag` of the version that the request is based on, several of them, or `*` (RFC 9110, section 13.1.1). If none matches: 412 `precondition_failed`.',
    }),
  ),
});

/**
 * Refuses `If-Match` on operations that do not honor it: ignored, it would let a client that relies on it overwrite a change
 * that it has not seen. Install after authentication.
 */
export function installPreconditions(app: FastifyInstance): void {
  app.addHook('onRequest', async (request) => {
    if (request.headers['if-match'] === undefined || honorsIfMatch(request)) return;
    throw invalid(
      '/headers/if-match',
      'is not supported by this operation',
      'Leave it out. It is supported where a draft is changed, sent or deleted: /api/v1/drafts/{id}.',
    );
  });
}

/** Paths without an operation answer 404 or 405 as usual. */
function honorsIfMatch({ is404, routeOptions: { schema } }: FastifyRequest): boolean {
  if (is404 || schema?.operationId === undefined) return true;
  return 'if-match' in ((schema.headers as TObject | undefined)?.properties ?? {});
}

/** An entity tag (RFC 9110, section 8.8.3), or a bare version. */
const TAG = /^(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"|(\d{1,10}))$/;

/**
 * Reads `If-Match`. Versions are entity tags of digits; a bare number is read as one, too. The comparison is strong, so weak
 * and other tags are valid and match no version.
 *
 * @throws AppError `validation_error` for a malformed list.
 */
export function parseIfMatch(header: string | undefined): IfMatch | undefined {
  if (header === undefined) return undefined;
  if (header.trim() === '*') return 'any';
  const members = splitList(header);
  const tags = members.map((member) => TAG.exec(member));
  if (members.length === 0 || tags.includes(null))
    throw invalid(
      '/headers/if-match',
      'is neither * nor a list of entity tags',
      'Send the ETag of the draft unchanged, with its quotes.',
    );
  return tags.flatMap((tag) => {
    const [, weak, opaque, bare] = tag ?? [];
    const version = bare ?? opaque ?? '';
    return weak === undefined && /^[1-9]\d{0,9}$/.test(version) ? [Number(version)] : [];
  });
}

/** Splits at commas outside quotes. Empty members do not count (RFC 9110, section 5.6.1.2). */
function splitList(header: string): string[] {
  return (header.match(/(?:"[^"]*"|[^",])+|"/g) ?? []).map((member) => member.trim()).filter(Boolean);
}
