import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Client } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import pg from 'pg';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { newId } from '../../platform/ids.ts';
import { addVirtualAuthenticator, findBrowserObstacle, launchBrowser } from '../support/browser.ts';
import { apiClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { OIDC_CLIENT, startOidcProvider } from '../support/identity-providers.ts';
import { sharedService } from '../support/service.ts';
import { connectToTemporal } from '../support/temporal-connection.ts';

jest.setTimeout(180_000);

const obstacle = findBrowserObstacle();
if (obstacle) process.stderr.write(`The story of people in a browser is skipped: ${obstacle}.\n`);

const PASSWORD = 'quiet-otter-marble-77';
const unique = randomBytes(6).toString('hex');
const OWNER = `owner-${unique}@people.example`;
const SSO_DOMAIN = `staff-${unique}.example`;
const MEMBER = `grace@${SSO_DOMAIN}`;

interface StoredEmail {
  to: { address: string }[];
  subject: string;
  text: string;
}

(obstacle ? describe.skip : describe)('people in a browser', () => {
  const service = sharedService();
  // Links in emails have this origin, and passkeys belong to it.
  const origin = new URL(service.sign_in_url).origin;
  let browser: Browser;
  let provider: Awaited<ReturnType<typeof startOidcProvider>>;
  const complaints: string[] = [];
  const mailedTokens: string[] = [];
  const startedAt = new Date().toISOString();

  beforeAll(async () => {
    provider = await startOidcProvider(`${origin}/api/v1/auth/sso/oidc/callback`);
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await provider?.close();
  });

  async function newPerson(): Promise<{ context: BrowserContext; page: Page }> {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) complaints.push(message.text());
    });
    return { context, page };
  }

  /** The link of the newest email to an address, as the mail UI shows it. */
  const mailedLink = (address: string, path: string) =>
    eventually(async () => {
      const emails = (await (await fetch(`${service.mail_ui}/api/email`)).json()) as StoredEmail[];
      const own = emails.filter(({ to }) => to.some((recipient) => recipient.address === address));
      const links = own.flatMap(({ text }) => text.match(/https?:\/\/\S+/g) ?? []);
      const link = links.findLast((url) => url.startsWith(`${origin}${path}`));
      expect(link).toBeDefined();
      mailedTokens.push(new URL(link as string).searchParams.get('token') ?? '');
      return link as string;
    }, 30_000);

  const click = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
  const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true }).waitFor();

  test('sign up, sign in by passkey, invite, sign on by SSO, approve what an agent sends, read the audit log, and leave no token behind', async () => {
    const { page } = await newPerson();
    await addVirtualAuthenticator(page);

    // Sign up, and open the link of the email in the same browser.
    await page.goto(`${origin}/signup`);
    await page.getByLabel('Your name').fill('Ada Lovelace');
    await page.getByLabel('Organization').fill(`Engines ${unique}`);
    await page.getByLabel('Email address').fill(OWNER);
    await page.getByLabel('Password').fill(PASSWORD);
    await click(page, 'Sign up');
    await heading(page, 'Check your mailbox');
    await page.goto(await mailedLink(OWNER, '/verify-email'));
    await click(page, 'Confirm my address');
    await heading(page, 'Overview');
    await heading(page, 'Your first API key');
    const apiKey = (await page.locator('#api-key').textContent()) ?? '';
    expect(apiKey).toMatch(/^ask_live_/);

    // Add a passkey, and sign in with it.
    await page.goto(`${origin}/account`);
    await page.getByLabel('Name of the new passkey').fill('This laptop');
    await click(page, 'Add a passkey');
    await heading(page, 'Your recovery codes');
    await page.context().clearCookies();
    await page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = async () => false');
    await page.goto(`${origin}/login?next=/settings`);
    await click(page, 'Sign in with a passkey');
    await heading(page, 'Settings');

    // Invite the second person. The email arrives.
    const call = apiClient(service, apiKey);
    const organization = (await call('GET', '/org')).body;
    await page.goto(`${origin}/members?org=${organization.id}`);
    const invitations = page.locator('section', {
      has: page.getByRole('heading', { name: 'Invite someone' }),
    });
    await invitations.getByLabel('Email address').fill(MEMBER);
    await invitations.getByLabel('Role').selectOption('developer');
    await click(page, 'Send the invitation');
    await page.getByRole('cell', { name: MEMBER }).waitFor();
    await mailedLink(MEMBER, '/invitations/accept');

    // Set up single sign-on, test and activate it.
    await verifyDomain(organization.id);
    await page.goto(`${origin}/settings/single-sign-on?org=${organization.id}`);
    const oidc = page.locator('section', {
      has: page.getByRole('heading', { name: 'Set up OpenID Connect' }),
    });
    await oidc.getByLabel('Name', { exact: true }).fill('Staff accounts');
    await oidc.getByLabel('Issuer').fill(provider.issuer);
    await oidc.getByLabel('Client id').fill(OIDC_CLIENT.clientId);
    await oidc.getByLabel('Client secret').fill(OIDC_CLIENT.clientSecret);
    await oidc.getByLabel('Domains of the members’ addresses').first().fill(SSO_DOMAIN);
    await oidc.getByLabel('Role of new members').selectOption('developer');
    await oidc.getByRole('button', { name: 'Create a draft' }).click();
    await click(page, 'Test Staff accounts');
    await signInAtProvider(page, `tester@${SSO_DOMAIN}`);
    await heading(page, 'The test passed');
    await page.goto(`${origin}/settings/single-sign-on?org=${organization.id}`);
    await click(page, 'Activate Staff accounts');
    await page.getByRole('heading', { name: 'Staff accounts OIDC active' }).waitFor();

    // From now on a person approves what keys send.
    await page.goto(`${origin}/settings/sending?org=${organization.id}`);
    await page.getByLabel('A person approves what API keys and mail programs send').selectOption('all');
    await click(page, 'Save the policies');
    await page.getByText('Saved.').waitFor();

    // The second person joins by single sign-on.
    const member = await newPerson();
    await member.page.goto(`${origin}/login/sso?next=/approvals`);
    await member.page.getByLabel('Organization').fill(organization.id);
    await click(member.page, 'Continue');
    await signInAtProvider(member.page, MEMBER);
    await member.page.getByText('Nothing waits for your approval').waitFor();

    // An agent sends. Its message waits, until the second person approves it.
    const inbox = (await call('POST', '/inboxes', {})).body;
    const held = await call('POST', `/inboxes/${inbox.id}/messages`, {
      to: [{ email: 'customer@people.example' }],
      subject: 'Your order',
      html_body: '<p>It leaves <b>today</b>.</p><script>document.title = "taken over"</script>',
    });
    expect([held.status, held.body.send_status]).toEqual([202, 'pending_approval']);
    await member.page.reload();
    await member.page.getByRole('link', { name: 'Your order' }).click();
    await member.page.frameLocator('iframe').getByText('It leaves today.').waitFor();
    await member.page.getByLabel('Note').first().fill('Looks right');
    await click(member.page, 'Approve and send');
    await member.page.getByText('Nothing waits for your approval').waitFor();
    const message = await eventually(async () => {
      const { data } = (await call('GET', `/inboxes/${inbox.id}/messages`)).body;
      expect(data[0]).toMatchObject({ subject: 'Your order', status: 'delivered' });
      return data[0];
    }, 30_000);
    expect(message?.draft_id).toBe(held.body.id);

    // The audit log has it all.
    const log = (await call('GET', '/org/audit-log?limit=100')).body.data;
    const actions = log.map(({ action }) => action);
    for (const action of [
      'user.mfa_added',
      'invitation.created',
      'sso_configuration.activated',
      'policies.updated',
      'member.joined',
      'draft.approved',
    ])
      expect(actions).toContain(action);
    expect(log.find(({ action }) => action === 'draft.approved')).toMatchObject({
      actor: { kind: 'user', name: 'Grace Hopper' },
      reason: 'Looks right',
    });
    await page.goto(`${origin}/audit-log?org=${organization.id}`);
    await page.getByRole('cell', { name: 'Grace Hopper' }).first().waitFor();
    expect(complaints).toEqual([]);

    const tokens = [PASSWORD, apiKey, ...mailedTokens];
    for (const context of [page.context(), member.context])
      tokens.push(...(await context.cookies(origin)).map(({ value }) => value));
    expect(tokens.length).toBeGreaterThan(5);
    const records = [...readLogs(), ...(await readHistories(organization.id))];
    for (const record of records) expect(tokens.filter((token) => record.includes(token))).toEqual([]);
  });

  /** What the processes of the service have logged. */
  const readLogs = (): string[] => {
    const folder = join(service.dataDir, 'logs');
    const logs = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
    expect(logs.join('').length).toBeGreaterThan(1_000);
    return logs;
  };

  /** Of the organization's runs, and of the emails to people, which belong to no organization. */
  async function readHistories(organizationId: string): Promise<string[]> {
    const connection = await connectToTemporal(service.temporal_address);
    const { workflow } = new Client({ connection });
    const histories: string[] = [];
    const query = `StartTime > "${startedAt}" AND (OrgId = "${organizationId}" OR WorkflowType = "sendNotification")`;
    for await (const { workflowId, runId } of workflow.list({ query }))
      histories.push(historyToJSON(await workflow.getHandle(workflowId, runId).fetchHistory()));
    await connection.close();
    expect(histories.length).toBeGreaterThan(3);
    return histories.map((history) => history + decodePayloads(history));
  }

  /** Payloads are base64. */
  const decodePayloads = (history: string): string =>
    [...history.matchAll(/"data":\s*"([A-Za-z0-9+/=]+)"/g)]
      .map(([, data = '']) => Buffer.from(data, 'base64').toString())
      .join('\n');

  /** The form of the provider's own page. */
  async function signInAtProvider(page: Page, login: string): Promise<void> {
    await page.waitForURL(`${provider.issuer}/**`);
    await page.locator('[name=login]').fill(login);
    await page.locator('[name=password]').fill('any');
    await page.locator('[type=submit]').click();
    await page.locator('[type=submit]').click();
    await page.waitForURL(`${origin}/**`);
  }

  async function verifyDomain(organizationId: string): Promise<void> {
    const database = new pg.Client({ connectionString: service.database_url });
    await database.connect();
    await database.query(
      `insert into domains (id, org_id, domain_name, ownership_token, verification_status, observed, generation_started_at,
         verified_at, created_at, updated_at) values ($1, $2, $3, 'x', 'verified', '{}', now(), now(), now(), now())`,
      [newId('domain'), organizationId, SSO_DOMAIN],
    );
    await database.end();
  }
});
