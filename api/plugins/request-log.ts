import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { RequestRecorder } from '../../domain/requests/request-recorder.ts';

const ID = /^[a-z]{3}_[0-9a-z]{26}$/;
/** A word of a path that was guessed; what begins like a token or an id is none. */
const WORD = /^(?!(?:[a-z]{3}|whsec)_)[a-z]{1,20}(?:[-_][a-z]{1,20}){0,3}$/i;
/** A guessed path is arbitrary text. */
const MAX_SEGMENTS = 12;

/**
 * Records each call of an organization for `GET /requests`, after its response. Support sessions have a record of their own,
 * and pages are no calls. A tool call is recorded as the operation that it is.
 */
export function installRequestLog(app: FastifyInstance, { recorder }: { recorder: RequestRecorder }): void {
  app.addHook('onResponse', async (request, reply) => {
    const scope = request.scope ?? request.caller?.scope;
    if (!scope || scope.impersonation || request.routeOptions.config.page || request.ranOperation) return;
    const { kind, id } = scope.actor;
    if (kind !== 'api_key' && kind !== 'connection' && kind !== 'user') return;
    recorder.record({
      id: request.id,
      organizationId: scope.organizationId,
      environmentId: scope.environmentId,
      method: request.method,
      path: describePath(request),
      status: reply.statusCode,
      code: request.problemCode ?? null,
      credentialKind: kind,
      credentialId: id,
      durationMs: Math.round(reply.elapsedTime),
    });
  });
  app.addHook('onClose', () => recorder.close());
}

/** Without the query and without what is neither an id nor a word: an address or a token may be in a path. */
export function describePath({
  is404,
  routeOptions,
  params,
  url,
}: Pick<FastifyRequest, 'is404' | 'routeOptions' | 'params' | 'url'>): string {
  if (!is404 && routeOptions.url !== undefined) {
    const values = params as Record<string, string | undefined>;
    return routeOptions.url.replace(/:(\w+)/g, (_, name: string) => {
      const value = values[name] ?? '';
      const isWord = (name === 'direction' || name === 'effect') && WORD.test(value);
      return isWord || ID.test(value) ? value : `{${name}}`;
    });
  }
  const [path = ''] = url.split(/[?#]/, 1);
  const segments = path.split('/').filter((segment) => segment !== '');
  const shown = segments
    .slice(0, MAX_SEGMENTS)
    .map((segment) => (ID.test(segment) || WORD.test(segment) || /^v\d$/.test(segment) ? segment : '…'));
  return `/${shown.join('/')}${segments.length > MAX_SEGMENTS ? '/…' : ''}`;
}
