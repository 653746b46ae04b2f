import type { FastifyReply } from 'fastify';
import type { Cookies } from '../plugins/cookies.ts';

/** Binds a sign-in with a provider to the browser that started it. */
export const OAUTH_COOKIE = 'oauth';
const OAUTH_COOKIE_SECONDS = 600;

export function setOauthCookie(reply: FastifyReply, cookies: Cookies, browserToken: string): void {
  cookies.set(reply, OAUTH_COOKIE, browserToken, { maxAgeSeconds: OAUTH_COOKIE_SECONDS });
}
