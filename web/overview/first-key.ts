import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Cookies } from '../../api/plugins/cookies.ts';
import type { SecretBox } from '../../platform/crypto.ts';

const COOKIE = 'first-key';
const MAX_AGE_SECONDS = 300;

/** Carries the first API key of a sign-up from the form that creates it to Overview, which shows it once. */
export interface FirstKey {
  keep(reply: FastifyReply, created: { apiKey: string; sessionId: string; organizationId: string }): void;
  /**
   * The key, for the session and organization that it was kept for, within five minutes of the sign-up; undefined for all
   * else. Whatever the browser has sent is cleared.
   */
  take(request: FastifyRequest, reply: FastifyReply): string | undefined;
}

/** The key stands encrypted in a cookie, so that it is stored nowhere else, and the cookie alone is worth nothing. */
export function createFirstKey({ cookies, secretBox }: { cookies: Cookies; secretBox: SecretBox }): FirstKey {
  const open = (value: string, context: string): string | undefined => {
    try {
      return secretBox.open(Buffer.from(value, 'base64url'), context);
    } catch {
      // Forged, altered, of another session, or sealed with a key that has been removed since.
      return undefined;
    }
  };

  return {
    keep(reply, { apiKey, ...owner }) {
      const sealed = secretBox.seal(apiKey, sealContext(owner)).toString('base64url');
      cookies.set(reply, COOKIE, sealed, { maxAgeSeconds: MAX_AGE_SECONDS });
    },
    take(request, reply) {
      const value = cookies.read(request, COOKIE);
      if (value === undefined) return undefined;
      cookies.clear(reply, COOKIE);
      const { organizationId, member } = request.scope;
      if (!member) return undefined;
      // The session began with the sign-up. A browser need not keep to the age of a cookie.
      const { sessionId, authenticatedAt } = member.person;
      if (Date.now() - authenticatedAt.getTime() > MAX_AGE_SECONDS * 1000) return undefined;
      return open(value, sealContext({ sessionId, organizationId }));
    },
  };
}

const sealContext = ({ sessionId, organizationId }: { sessionId: string; organizationId: string }): string =>
  `first-key:${organizationId}:${sessionId}`;
