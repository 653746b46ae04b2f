import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../../platform/errors.ts';
import { wantsJson } from '../people/wants-json.ts';
import type { BrowserSession } from '../plugins/browser-session.ts';
import { toAppError } from '../plugins/error-responses.ts';

/** The notice that a page shows for an error. Others, such as a defect, are reported as to programs. */
export const OAUTH_NOTICES = {
  oauth_failed: 'provider-failed',
  invalid_credentials: 'provider-failed',
  account_deleted: 'account-recoverable',
  unavailable: 'provider-unavailable',
  account_exists: 'account-exists',
  unprocessable: 'provider-without-address',
  already_exists: 'provider-linked-elsewhere',
  conflict: 'other-identity-linked',
} as const satisfies Partial<Record<ErrorCode, string>>;
const NOTICES: Partial<Record<ErrorCode, string>> = OAUTH_NOTICES;

/** A provider sends a browser here, and its person needs a page instead of a JSON document. */
export function showFailuresOnPages(
  app: Pick<FastifyInstance, 'setErrorHandler'>,
  browserSession: BrowserSession,
): void {
  app.setErrorHandler((error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const notice = NOTICES[toAppError(error).code];
    if (notice === undefined || wantsJson(request)) throw error;
    const page = browserSession.read(request) === undefined ? '/login' : '/account';
    return reply.redirect(`${page}?notice=${notice}`, 303);
  });
}
