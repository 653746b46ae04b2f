import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../../platform/errors.ts';
import type { Notice } from '../pages/notices.ts';
import type { BrowserSession } from '../people/browser-session.ts';
import { wantsJson } from '../people/wants-json.ts';
import { toAppError } from '../plugins/error-responses.ts';

/** What the page says about an error. Others, such as a defect, are reported as to programs. */
const NOTICE_OF: Partial<Record<ErrorCode, Notice>> = {
  oauth_failed: 'provider-failed',
  invalid_credentials: 'provider-failed',
  account_deleted: 'account-recoverable',
  unavailable: 'provider-unavailable',
  account_exists: 'account-exists',
  unprocessable: 'provider-without-address',
  already_exists: 'provider-linked-elsewhere',
  conflict: 'other-identity-linked',
};

/** A provider sends a browser here, and its person needs a page instead of a JSON document. */
export function showFailuresOnPages(
  app: Pick<FastifyInstance, 'setErrorHandler'>,
  browserSession: BrowserSession,
): void {
  app.setErrorHandler((error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const notice = NOTICE_OF[toAppError(error).code];
    if (notice === undefined || wantsJson(request)) throw error;
    const page = browserSession.read(request) === undefined ? '/login' : '/account';
    return reply.redirect(`${page}?notice=${notice}`, 303);
  });
}
