import { sql } from 'kysely';
import { openSealedParams } from '../../domain/notifications/person-notification.service.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { query } from './query.ts';
import type { TestApp } from './test-app.ts';

export interface AccountMail {
  template: string;
  /** Empty if the email has none. */
  token: string;
}

/** Reads the emails that the service has written to an address, oldest first. */
export async function readAccountMail(app: TestApp, email: string): Promise<AccountMail[]> {
  const secretBox = createSecretBox(app.config.ENCRYPTION_KEY);
  const rows = await query<{ id: string; template: string; sealedParams: Buffer | null }>(
    app.worker,
    sql`select id, template, sealed_params as "sealedParams" from notifications where email = ${email} order by id`,
  );
  return rows.map((row) => {
    const { token = '' } = openSealedParams(secretBox, row) as { token?: string };
    return { template: row.template, token };
  });
}
