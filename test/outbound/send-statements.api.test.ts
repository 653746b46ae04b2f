import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import pg, { type QueryConfig } from 'pg';
import type { OutboxCommand } from '../../platform/outbox/outbox-command.ts';
import { billingConfig } from '../support/billing-config.ts';
import { eventually } from '../support/eventually.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
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
async function recordStatements(send: () => Promise<void>): Promise<string[]> {
  const query = jest.spyOn(pg.Client.prototype, 'query');
  const read = () =>
    query.mock.calls
      .map(([statement]) =>
        typeof statement === 'string' ? statement : (statement as unknown as QueryConfig).text,
      )
      // One statement a second lists the calls of all organizations; whether it runs meanwhile is chance.
      .filter((text) => !text.includes('record_api_requests'));
  try {
    await send();
    await eventually(() => {
      for (const last of ['delete_dispatched', 'count_api_calls'])
        expect(read().filter((text) => text.includes(last))).toHaveLength(1);
    });
    return read();
  } finally {
    query.mockRestore();
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
  await recordStatements(send);
  const statements = await recordStatements(send);
  expect(dispatched).toHaveLength(2);
  expect(statements.filter((text) => text.includes('shared_domain_caps'))).toHaveLength(1);
  expect(statements.length).toBeLessThanOrEqual(MAX_STATEMENTS);
});
