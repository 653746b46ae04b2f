import { IDEMPOTENT_RESPONSES } from '../platform/idempotency/idempotency-store.ts';
import type { SealedColumn } from '../platform/sealed-column.ts';
import { DKIM_PRIVATE_KEYS } from './domains/dkim-keys.ts';
import { NOTIFICATION_SECRETS } from './notifications/person-notification.service.ts';
import { TOTP_SECRETS } from './people/mfa.service.ts';
import { SSO_CLIENT_SECRETS } from './sso/sso-settings.ts';
import { SSO_TRANSACTION_SECRETS } from './sso/sso-transactions.ts';
import { ENDPOINT_SECRETS } from './webhooks/endpoint-secret.ts';

/** Every encrypted column. `test/guards/sealed-columns.api.test.ts` compares it with the columns of the database. */
export const sealedColumns: readonly SealedColumn[] = [
  IDEMPOTENT_RESPONSES,
  DKIM_PRIVATE_KEYS,
  NOTIFICATION_SECRETS,
  TOTP_SECRETS,
  SSO_CLIENT_SECRETS,
  SSO_TRANSACTION_SECRETS,
  ...ENDPOINT_SECRETS,
];
