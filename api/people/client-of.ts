import type { FastifyRequest } from 'fastify';
import type { Client } from '../../domain/identity/person.ts';
import type { Cookies } from '../plugins/cookies.ts';

/** Who makes a request without a session, for the list of sessions and the audit log. */
export function clientOf(request: FastifyRequest): Client {
  const { ip, headers, id } = request;
  const userAgent = headers['user-agent']?.slice(0, 300) ?? null;
  return { ip, userAgent, requestId: id, deviceTokens: request.readDeviceTokens() };
}

/** Identifies a browser to pages before it has a session: binds their forms, and sign-ins that wait for a second factor. */
export const BROWSER_COOKIE = 'browser';

/** The same with the browser's cookie. Clients of the API have none: their `mfa_token` is bound to nothing. */
export function browserClientOf(request: FastifyRequest, cookies: Cookies): Client {
  const browserToken = cookies.read(request, BROWSER_COOKIE);
  return { ...clientOf(request), ...(browserToken === undefined ? {} : { browserToken }) };
}
