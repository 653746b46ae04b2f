import { sql } from 'kysely';
import type { TemplateName } from '../../domain/notifications/templates.ts';
import type { Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { query } from './query.ts';
import type { TestApp } from './test-app.ts';

/** An email of the service that the relay refused. Returns its id. */
export async function createFailedEmail(
  worker: Database,
  { organizationId, ownerId }: { organizationId: string | null; ownerId: string },
  {
    template = 'api-key-expiring',
    createdAt = new Date(),
    lastError = '550 5.7.1 relaying denied',
  }: { template?: TemplateName; createdAt?: Date; lastError?: string } = {},
): Promise<string> {
  const id = newId('notification');
  const params = {
    organizationId,
    keyId: 'key_1',
    keyName: 'Agent',
    lastFour: 'abcd',
    expiresAt: 'tomorrow',
  };
  await query(
    worker,
    sql`insert into notifications (id, org_id, user_id, email, template, params, dedupe_key, status, attempts, last_error,
      created_at)
    values (${id}, ${organizationId}, ${ownerId}, ${`${ownerId}@example.test`}, ${template},
      ${JSON.stringify(params)}::jsonb, ${id}, 'failed', 9, ${lastError}, ${createdAt}) returning id`,
  );
  return id;
}

/** An endpoint of the key's environment. Returns its id. */
export async function createTestEndpoint(app: TestApp, token: string): Promise<string> {
  const body = { url: 'https://receiver.example/hook', events: ['message.received'] };
  const response = await app.call('/webhooks/endpoints', { method: 'POST', token, body });
  return response.json().id;
}
