import type { Logger } from 'pino';
import { isId } from '../../platform/ids.ts';
import type { Credentials } from './authentication.ts';
import type { Scope } from './scope.ts';

/** What an API key or a connection reaches, as its row says. */
interface Reach {
  organizationId: string;
  environmentBound: boolean;
  inboxId: string | null;
}

/** The scope of a request with an API key or a connection, less what depends on the kind of credential. */
export const toTenantScope = (
  { organizationId, environmentBound, inboxId }: Reach,
  environmentId: string,
  credentials: Credentials,
): Omit<Scope, 'actor' | 'permissions'> => ({
  organizationId,
  environmentId,
  environmentBound,
  environmentSelected: credentials.environmentId !== undefined,
  ...(inboxId === null ? {} : { inboxId }),
  ip: credentials.ip,
  requestId: credentials.requestId,
});

/**
 * A header's id, as the parameter of a statement; null if the request has no such header. Text that is not an id matches nothing,
 * and may contain characters that PostgreSQL cannot store.
 */
export function toIdParameter(
  kind: 'environment' | 'organization',
  value: string | undefined,
): string | null {
  if (value === undefined) return null;
  return isId(kind, value) ? value : '';
}

/**
 * Returns a function that records the use of a credential asynchronously, with one update at a time for each. A lost update only
 * makes `last_used_at` less precise.
 *
 * @param what the credential, as in "an API key".
 */
export function createUseRecorder(logger: Logger, what: string) {
  const pending = new Set<string>();
  return (id: string, update: () => Promise<unknown>): void => {
    if (pending.has(id)) return;
    pending.add(id);
    update()
      .catch((error: unknown) => logger.warn({ err: error }, `could not record the last use of ${what}`))
      .finally(() => pending.delete(id));
  };
}
