import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { OutboxCommand } from '../../platform/outbox/outbox-command.ts';
import { billingConfig } from '../support/billing-config.ts';
import { eventually } from '../support/eventually.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { recordStatements } from '../support/recorded-statements.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';

const MAX_STATEMENTS = 12;

const dispatched: OutboxCommand[] = [];
let app: TestApp;
beforeAll(async () => {
  const workflows = { dispatch: async (command: OutboxCommand) => void dispatched.push(command) };
  // With billing, new organizations have a daily cap on the shared domain, which every send counts against.
  app = await startTestApp({ workflows, config: billingConfig() });
});
afterAll(() => app?.close());

/** Returns the statements of a send, until its command is removed and its call is counted. */
async function statementsOf(send: () => Promise<void>): Promise<string[]> {
  const recorded = recordStatements();
  // One statement a second lists the calls of all organizations; whether it runs meanwhile is chance.
  const read = () => recorded.texts().filter((text) => !text.includes('record_api_requests'));
  try {
    await send();
    await eventually(() => {
      for (const last of ['delete_dispatched', 'count_api_calls'])
        expect(read().filter((text) => text.includes(last))).toHaveLength(1);
    });
    return read();
  } finally {
    recorded.stop();
  }
}

test('an accepted send takes at most 12 statements, with its command and the count of its call', async () => {
  const organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const send = async () => {
    const response = await app.call(`/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      token: organization.token,
      body: {
        to: [{ email: 'bob@people.example' }],
        cc: [{ email: 'eve@people.example' }],
        subject: 'Hi',
        text_body: 'Hello',
      },
    });
    expect(response.json()).toMatchObject({ status: 'queued', recipients: [{}, {}] });
  };
  // The first request of a while also notes that the key is used, and leases tokens of the rate limits.
  await statementsOf(send);
  const statements = await statementsOf(send);
  expect(dispatched).toHaveLength(2);
  expect(statements.filter((text) => text.includes('shared_domain_caps'))).toHaveLength(1);
  expect(statements.length).toBeLessThanOrEqual(MAX_STATEMENTS);
});
