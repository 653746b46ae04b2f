import type { FastifyReply, FastifyRequest } from 'fastify';
import type { MfaMethod, SignInResult } from '../../domain/people/start-session.ts';
import type { BrowserSession } from '../plugins/browser-session.ts';
import type { Cookies } from '../plugins/cookies.ts';

const MFA_COOKIE = 'mfa';
const MFA_COOKIE_SECONDS = 600;

/** A sign-in that waits for its second factor. The token stays in a cookie, so it works in this browser only. */
export interface PendingMfa {
  mfaToken: string;
  methods: MfaMethod[];
}

/** What each way to sign in does with its result in a browser. */
export interface BrowserSignIn {
  /** Starts the browser's session, or asks for the second factor. @param next a local path. */
  finish(reply: FastifyReply, result: SignInResult, next: string): FastifyReply;
  /** Undefined if no sign-in waits in this browser. */
  readPendingMfa(request: FastifyRequest): PendingMfa | undefined;
}

export function createBrowserSignIn({
  cookies,
  browserSession,
}: {
  cookies: Cookies;
  browserSession: BrowserSession;
}): BrowserSignIn {
  return {
    finish(reply, result, next) {
      if (result.kind === 'mfa_required') {
        const value = [result.mfaToken, ...result.methods].join('.');
        cookies.set(reply, MFA_COOKIE, value, { maxAgeSeconds: MFA_COOKIE_SECONDS });
        return reply.redirect(`/login/mfa?${new URLSearchParams({ next })}`, 303);
      }
      cookies.clear(reply, MFA_COOKIE);
      browserSession.start(reply, result.session);
      return reply.redirect(result.isEnrollmentOnly ? '/account' : next, 303);
    },
    readPendingMfa(request) {
      const [mfaToken, ...methods] = cookies.read(request, MFA_COOKIE)?.split('.') ?? [];
      return mfaToken === undefined ? undefined : { mfaToken, methods: methods as MfaMethod[] };
    },
  };
}
