import type { FastifyReply, FastifyRequest } from 'fastify';
import '@fastify/cookie';

export interface Cookies {
  /** Undefined if the browser sent none. */
  read(request: FastifyRequest, name: string): string | undefined;
  set(reply: FastifyReply, name: string, value: string, options: CookieOptions): void;
  clear(reply: FastifyReply, name: string): void;
}

export interface CookieOptions {
  maxAgeSeconds: number;
  /** `none`: also sent with a POST that another site makes, as SAML identity providers do. Default: `lax`. */
  sameSite?: 'lax' | 'none';
}

/**
 * Cookies of this service: no script reads them, and no other host receives them. Behind TLS their names begin with
 * `__Host-`, so that no other host can set them either (RFC 6265bis section 4.1.3.2). Without TLS, for development,
 * browsers differ in which secure cookies they accept, so plain ones are used.
 */
export function createCookies({ publicUrl }: { publicUrl: string }): Cookies {
  const isTls = publicUrl.startsWith('https://');
  const nameOf = (name: string) => (isTls ? `__Host-${name}` : name);
  const attributes = (sameSite: 'lax' | 'none' = 'lax') =>
    // Browsers accept SameSite=None only from secure cookies, and those also from http://localhost.
    ({ path: '/', httpOnly: true, secure: isTls || sameSite === 'none', sameSite }) as const;
  return {
    read: (request, name) => request.cookies[nameOf(name)],
    set(reply, name, value, { maxAgeSeconds, sameSite }) {
      reply.setCookie(nameOf(name), value, { ...attributes(sameSite), maxAge: maxAgeSeconds });
    },
    clear(reply, name) {
      reply.clearCookie(nameOf(name), attributes());
    },
  };
}
