import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Cookies } from '../plugins/cookies.ts';

const BROWSER_COOKIE = 'sso';
const LINK_COOKIE = 'sso-link';
const MAX_AGE_SECONDS = 600;

/** Cookies of a login through SSO. They live as long as its transaction. */
export interface SsoCookies {
  readBrowser(request: FastifyRequest): string | undefined;
  /** Sent with the POST of an identity provider, which comes from another site. It proves nothing but the browser. */
  setBrowser(reply: FastifyReply, browserToken: string): void;
  /** For the page on which a person signs in to link an existing account. */
  setLink(reply: FastifyReply, linkToken: string): void;
  readLink(request: FastifyRequest): string | undefined;
  clearLink(reply: FastifyReply): void;
}

export function createSsoCookies(cookies: Cookies): SsoCookies {
  return {
    readBrowser: (request) => cookies.read(request, BROWSER_COOKIE),
    setBrowser: (reply, token) =>
      cookies.set(reply, BROWSER_COOKIE, token, { maxAgeSeconds: MAX_AGE_SECONDS, sameSite: 'none' }),
    setLink: (reply, token) => cookies.set(reply, LINK_COOKIE, token, { maxAgeSeconds: MAX_AGE_SECONDS }),
    readLink: (request) => cookies.read(request, LINK_COOKIE),
    clearLink: (reply) => cookies.clear(reply, LINK_COOKIE),
  };
}

/** The person signs in to the account, and confirms the link. */
export const LINK_PAGE = '/login?next=%2Flogin%2Flink&notice=link-account';
