import { expect, jest, test } from '@jest/globals';
import nodemailer from 'nodemailer';
import { findFreePort } from '../../dev/stack/ports.ts';
import { createApiKey } from '../../domain/api-keys/create-api-key.ts';
import { PERMISSIONS } from '../../domain/identity/permissions.ts';
import { createOrganization } from '../../domain/organizations/create-organization.ts';
import { createUser } from '../../domain/people/users.ts';
import { createDatabase } from '../../platform/database/database.ts';
import { apiClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { useIsolatedOrganization } from '../support/isolated-organization.ts';

jest.setTimeout(300_000);
const TIMEOUT_MS = 120_000;
const FLOOD = 200;

const flooded = useIsolatedOrganization();

async function createNeighborKey(): Promise<string> {
  const database = createDatabase({ url: flooded.service.config.DATABASE_URL, poolSize: 1 });
  const token = await database.systemTransaction(async ({ db }) => {
    const ownerId = await createUser(db, { email: 'neighbor@people.example', passwordHash: '' });
    const { organizationId } = await createOrganization(db, {
      name: 'Neighbor',
      tier: 'enterprise',
      ownerId,
    });
    const input = { organizationId, environmentId: null, name: 'Key', permissions: [...PERMISSIONS] };
    return (await createApiKey(db, input, 'live')).token;
  });
  await database.close();
  return token;
}

async function flood(to: string, port: number): Promise<void> {
  const transport = nodemailer.createTransport({
    pool: true,
    host: '127.0.0.1',
    port,
    ignoreTLS: true,
    maxConnections: 10,
  });
  await Promise.all(
    Array.from({ length: FLOOD }, (_, index) =>
      transport.sendMail({ from: 'ada@people.example', to, subject: `Flood ${index}`, text: 'One of many.' }),
    ),
  );
  transport.close();
}

const numberOf = async (statement: string, values: unknown[] = []): Promise<number> =>
  Number((await flooded.database.query(statement, values)).rows[0].count);

test('a send of another organization does not wait for a flood that came before it', async () => {
  const { service, call } = flooded;
  const neighbor = apiClient({ base_url: service.baseUrl }, await createNeighborKey());
  const { body: inbox } = await call('POST', '/inboxes', {});
  const { body: neighborInbox } = await neighbor('POST', '/inboxes', {});
  // Without workers everything waits in Temporal, the flood first.
  await service.kill('workers');
  const port = await findFreePort();
  await service.startScript('workers/inbound-smtp.ts', { INBOUND_SMTP_PORT: String(port) });
  await flood(inbox.email, port);
  const untilStarted = () =>
    eventually(async () => expect(await numberOf('select count(*) from outbox')).toBe(0), TIMEOUT_MS);
  await untilStarted();
  const { body: sent } = await neighbor('POST', `/inboxes/${neighborInbox.id}/messages`, {
    to: [{ email: 'ada@people.example' }],
    text_body: 'Behind the flood.',
  });
  await untilStarted();
  await service.start('workers');

  await eventually(
    async () =>
      expect(await numberOf('select count(*) from messages where inbox_id = $1', [inbox.id])).toBe(FLOOD),
    TIMEOUT_MS,
  );
  const storedAfterTheSend = await numberOf(
    `select count(*) from inbound_receipts r join messages s on s.id = $1
     where r.inbox_id = $2 and r.processed_at > s.sent_at`,
    [sent.id, inbox.id],
  );
  expect(storedAfterTheSend).toBeGreaterThan(FLOOD / 4);
});

test('a message of a flood is processed in one workflow task: its history has six events', async () => {
  const inOneTask = "WorkflowType = 'receiveMessage' and ExecutionStatus = 'Completed' and HistoryLength = 6";
  // Most: on a busy machine, some tasks take longer than their timeout and are repeated.
  await eventually(
    async () => expect((await flooded.temporal.workflow.count(inOneTask)).count).toBeGreaterThan(FLOOD / 2),
    TIMEOUT_MS,
  );
});
