import { expect, test } from '@jest/globals';
import { serviceEnvironments } from '../../dev/services.ts';
import { readDevSettings } from '../../dev/settings.ts';
import { loadConfig } from '../../platform/config.ts';

const key = Buffer.alloc(32, 1).toString('base64');

/** As written to api.env and worker.env. */
function environmentsWith(chosen: NodeJS.ProcessEnv) {
  const secrets = { encryptionKey: key, signingKey: key, metricsToken: 'token', dkimKeyFile: '/dkim.pem' };
  const parts = {
    databaseUrls: { api: 'postgresql://api@127.0.0.1/db', worker: 'postgresql://worker@127.0.0.1/db' },
    temporal: { address: '127.0.0.1:7233', uiUrl: undefined },
    s3: { S3_ENDPOINT: 'http://127.0.0.1:4566', S3_BUCKET: 'mail', S3_REGION: 'us-east-1' },
    stripe: {
      STRIPE_SECRET_KEY: 'sk_test_stand_in',
      STRIPE_WEBHOOK_SECRET: 'whsec_stand_in',
      STRIPE_PRICES_DEVELOPER: 'price_developer',
    },
  };
  return serviceEnvironments(readDevSettings(chosen), secrets as never, parts as never);
}

test('processes that are started by hand have the settings that were chosen, billing included', () => {
  const chosen = { BILLING_ENABLED: 'true', PAYMENT_GRACE_DAYS: '3', APPROVAL_DAYS: '2', HOME: '/root' };
  for (const environment of Object.values(environmentsWith(chosen))) {
    expect(loadConfig(environment)).toMatchObject({
      BILLING_ENABLED: true,
      DEFAULT_TIER: 'free',
      PAYMENT_GRACE_DAYS: 3,
      APPROVAL_DAYS: 2,
      STRIPE_PRICES_DEVELOPER: 'price_developer',
    });
    expect(environment).not.toHaveProperty('HOME');
  }
});

test('what the stack itself decides is not replaced', () => {
  for (const environment of Object.values(
    environmentsWith({ TEMPORAL_NAMESPACE: 'other', DATABASE_URL: 'x' }),
  ))
    expect(environment).toMatchObject({
      TEMPORAL_NAMESPACE: 'other',
      DATABASE_URL: expect.stringContaining('postgresql://'),
    });
});
