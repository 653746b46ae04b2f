import type { FastifyReply, FastifyRequest } from 'fastify';
import { BROWSER_COOKIE } from '../../api/people/client-of.ts';
import type { BrowserSession } from '../../api/plugins/browser-session.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { randomBase62, type Signer } from '../../platform/crypto.ts';
import { AppError } from '../../platform/errors.ts';

const BROWSER_COOKIE_SECONDS = 86_400;
const BROWSER_ID_LENGTH = 32;

/** Proves that a form was served by this service to the browser that submits it. */
export interface Csrf {
  /** The value of the field `csrf` in the forms of a page. Identifies the browser by a cookie if it has no session. */
  tokenFor(request: FastifyRequest, reply: FastifyReply): string;
  /** As {@link tokenFor}, in a page that this browser has open; empty if it identifies itself by nothing. */
  tokenOf(request: FastifyRequest): string;
  /** @throws AppError `permission_denied`. */
  verify(request: FastifyRequest, token: unknown): void;
}

/**
 * The token is an HMAC of the session, or of the browser's cookie before there is one, so that another site cannot
 * sign a browser in to a foreign account either (OWASP: signed double-submit cookie).
 *
 * @param signer purpose `csrf`.
 */
export function createCsrf({
  signer,
  cookies,
  browserSession,
}: {
  signer: Signer;
  cookies: Cookies;
  browserSession: BrowserSession;
}): Csrf {
  const identify = (request: FastifyRequest) =>
    browserSession.read(request) ?? cookies.read(request, BROWSER_COOKIE);

  return {
    tokenFor(request, reply) {
      const known = identify(request);
      if (known !== undefined) return signer.sign(known).toString('base64url');
      const id = randomBase62(BROWSER_ID_LENGTH);
      cookies.set(reply, BROWSER_COOKIE, id, { maxAgeSeconds: BROWSER_COOKIE_SECONDS });
      return signer.sign(id).toString('base64url');
    },
    tokenOf(request) {
      const known = identify(request);
      return known === undefined ? '' : signer.sign(known).toString('base64url');
    },
    verify(request, token) {
      const id = identify(request);
      const site = request.headers['sec-fetch-site'];
      const isOwn = site === undefined || site === 'same-origin';
      if (isOwn && id !== undefined && typeof token === 'string')
        if (signer.verify(id, Buffer.from(token, 'base64url'))) return;
      throw new AppError('permission_denied', {
        detail: 'The form is no longer valid, or was not opened in this browser.',
        fix: 'Go back, reload the page and try again. Cookies must be allowed.',
      });
    },
  };
}
