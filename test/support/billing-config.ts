import type { Config } from '../../platform/config.ts';

export const WEBHOOK_SECRET = 'whsec_test';

/** Settings of a service with billing. @param url of the stand-in for Stripe; nothing is requested before it is used. */
export const billingConfig = (url = 'http://127.0.0.1:9'): Partial<Record<keyof Config, string>> => ({
  BILLING_ENABLED: 'true',
  STRIPE_SECRET_KEY: 'sk_test_stand_in',
  STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
  STRIPE_API_BASE: url,
  STRIPE_TIMEOUT_MS: '2000',
  STRIPE_PRICES_DEVELOPER: 'price_developer',
  STRIPE_PRICES_BUSINESS: 'price_business',
  STRIPE_PRICES_ENTERPRISE: 'price_euro',
});
