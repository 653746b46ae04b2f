import { expect, test } from '@jest/globals';
import { loadConfig } from '../../platform/config.ts';
import { billingConfig } from '../support/billing-config.ts';
import { testEnvironment } from '../support/test-app.ts';

const load = (change: Record<string, string | undefined>) =>
  loadConfig({ ...testEnvironment('postgres://localhost/test', billingConfig()), ...change });

test.each([
  ['key', { STRIPE_SECRET_KEY: undefined }, 'STRIPE_SECRET_KEY is required with BILLING_ENABLED'],
  [
    'webhook secret',
    { STRIPE_WEBHOOK_SECRET: undefined },
    'STRIPE_WEBHOOK_SECRET is required with BILLING_ENABLED',
  ],
  [
    'price',
    {
      STRIPE_PRICES_DEVELOPER: undefined,
      STRIPE_PRICES_BUSINESS: undefined,
      STRIPE_PRICES_ENTERPRISE: undefined,
    },
    'prices are required with BILLING_ENABLED',
  ],
])('a process with billing and without a %s does not start', (_name, change, problem) => {
  expect(() => load(change)).toThrow(problem);
  expect(() => load({ ...change, BILLING_ENABLED: 'false' })).not.toThrow();
});

test('with billing, new organizations are free, and a grace has 15 days, unless the configuration says otherwise', () => {
  expect(load({})).toMatchObject({ DEFAULT_TIER: 'free', PAYMENT_GRACE_DAYS: 15 });
  expect(load({ DEFAULT_TIER: 'developer' })).toMatchObject({ DEFAULT_TIER: 'developer' });
});
