import Stripe from 'stripe';
import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';

/** The Stripe SDK, connected to the configured address. Its version of the API is fixed by the SDK's version. */
export function createStripe(
  config: Pick<Config, 'STRIPE_SECRET_KEY' | 'STRIPE_API_BASE' | 'STRIPE_TIMEOUT_MS'>,
): Stripe {
  const { protocol, hostname, port } = new URL(config.STRIPE_API_BASE);
  const isSecure = protocol === 'https:';
  return new Stripe(config.STRIPE_SECRET_KEY ?? '', {
    protocol: isSecure ? 'https' : 'http',
    host: hostname,
    port: port === '' ? (isSecure ? 443 : 80) : Number(port),
    timeout: config.STRIPE_TIMEOUT_MS,
    maxNetworkRetries: 1,
    telemetry: false,
  });
}

/** Whether the key belongs to live mode, in which money moves. */
export const isLiveKey = (key: string): boolean => /^[a-z]+_live_/.test(key);

/** Stripe has no such object, or has deleted it. */
export function isMissing(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing';
}

/** The key lacks a permission. @param error as {@link callStripe} throws it. */
export function isForbidden(error: unknown): boolean {
  return error instanceof AppError && error.cause instanceof Stripe.errors.StripePermissionError;
}

/**
 * Runs a request to Stripe.
 *
 * @throws AppError `unavailable` if Stripe gives no answer or none that helps; `unprocessable` if Stripe refuses what was
 * asked for, such as a card that was declined or a currency that does not fit. An object that is missing is thrown as it is,
 * see {@link isMissing}.
 */
export async function callStripe<T>(request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeError) || isMissing(error)) throw error;
    if (error instanceof Stripe.errors.StripeCardError)
      throw new AppError('unprocessable', {
        detail: `The payment failed: ${error.message}`,
        fix: 'Change the payment method in the portal (POST /billing/portal), and try again.',
        cause: error,
      });
    if (error instanceof Stripe.errors.StripeInvalidRequestError)
      throw new AppError('unprocessable', {
        detail: `Stripe refused the request: ${error.message}`,
        fix: 'Check the subscription (GET /billing/subscription), and contact support if the message does not help.',
        cause: error,
      });
    throw new AppError('unavailable', {
      detail: 'Stripe is unavailable. Nothing was changed.',
      fix: 'Try again in a minute.',
      headers: { 'retry-after': '60' },
      cause: error,
    });
  }
}
