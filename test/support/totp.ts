import { expect } from '@jest/globals';
import type { LightMyRequestResponse } from 'fastify';
import { generate } from 'otplib';

const STEP_SECONDS = 30;

/** The code of the current step, or of one before or after it. */
export const totpCode = (secret: string, steps = 0): Promise<string> =>
  generate({ secret, epoch: Math.floor(Date.now() / 1000) + steps * STEP_SECONDS });

export interface EnrolledApp {
  enrollmentId: string;
  secret: string;
  recoveryCodes: string[];
}

/**
 * Enrolls an authenticator app with the code of the previous step, so that the current one is left for the test.
 *
 * @param post makes a request of the person.
 */
export async function enrollTotp(
  post: (path: string, body: object) => Promise<LightMyRequestResponse>,
): Promise<EnrolledApp> {
  const { enrollment_id, secret } = (await post('/auth/mfa/totp/setup', {})).json();
  const verify = async () =>
    post('/auth/mfa/totp/verify', { enrollment_id, code: await totpCode(secret, -1) });
  const first = await verify();
  // If the step has ended on the way, the code was two steps old.
  const verified = first.statusCode === 401 ? await verify() : first;
  expect(verified.statusCode).toBe(200);
  return { enrollmentId: enrollment_id, secret, recoveryCodes: verified.json().recovery_codes };
}
