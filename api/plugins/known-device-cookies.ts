import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { SignInResult, StartedSession } from '../../domain/people/start-session.ts';
import { KNOWN_DEVICE_DAYS, MAX_PEOPLE_PER_BROWSER } from '../../domain/sessions/known-devices.ts';
import type { Cookies } from './cookies.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The tokens of people who have signed in with this browser. */
    readDeviceTokens(): string[];
  }
  interface FastifyReply {
    /** Makes the browser of a complete sign-in known. A sign-in that waits for its second factor changes nothing. */
    rememberDevice(signIn: SignInResult | { session: StartedSession }): void;
  }
}

const DEVICE_COOKIE = 'device';
const TOKENS = /^[0-9A-Za-z]{43}(?:\.[0-9A-Za-z]{43})*$/;
const DAY_SECONDS = 86_400;

/** The cookie of known devices. Every way to sign in sets it, of pages and of the API: see `domain/sessions/known-devices.ts`. */
export function installKnownDevices(app: FastifyInstance, cookies: Cookies): void {
  app.decorateRequest('readDeviceTokens', function (this: FastifyRequest) {
    const value = cookies.read(this, DEVICE_COOKIE) ?? '';
    return TOKENS.test(value) ? value.split('.', MAX_PEOPLE_PER_BROWSER) : [];
  });
  app.decorateReply('rememberDevice', function (this: FastifyReply, signIn) {
    if (!('session' in signIn)) return;
    const { deviceTokens } = signIn.session;
    if (deviceTokens.length === 0) return;
    const maxAgeSeconds = KNOWN_DEVICE_DAYS * DAY_SECONDS;
    cookies.set(this, DEVICE_COOKIE, deviceTokens.join('.'), { maxAgeSeconds });
  });
}
