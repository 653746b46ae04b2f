import { describe, expect, test } from '@jest/globals';
import { createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp();

describe('the page of policies for sending', () => {
  const arrangeOwner = async () => {
    const organization = await createOrganization(app.worker);
    const browser = createPageClient(app);
    const { token } = await createTestSession(app.worker, organization.ownerId);
    browser.cookies.set('session', token);
    const at = '/settings/sending';
    const policies = async () => (await app.call('/org/policies', { token })).json();
    return { browser, at, policies, token };
  };
  const FORM = {
    require_send_approval: 'external',
    after_alarm: 'none',
    max_recipients_per_message: '5',
    daily_send_cap_per_inbox: '',
    allowed_recipient_domains: 'a.example\r\nB.example, c.example',
    blocked_recipient_domains: '',
  };

  test('shows and changes them, and leaves the other policies as they are', async () => {
    const { browser, at, policies, token } = await arrangeOwner();
    await app.call('/org/policies', { method: 'PATCH', token, body: { session_max_age_hours: 8 } });
    const page = await browser.open('/organization/sending-policies');
    expect(browser.path).toBe(at);
    expect(page.body).toContain('A person approves');
    const saved = await browser.submit(at, FORM);
    expect(saved.body).toContain('Saved.');
    expect(saved.body).toMatch(/value="external" selected/);
    expect(await policies()).toMatchObject({
      require_send_approval: 'external',
      after_alarm: 'none',
      max_recipients_per_message: 5,
      daily_send_cap_per_inbox: null,
      allowed_recipient_domains: ['a.example', 'b.example', 'c.example'],
      auto_submitted_header: false,
      session_max_age_hours: 8,
    });
  });

  test.each([
    ['require_send_approval', 'some'],
    ['after_alarm', 'perhaps'],
    ['max_recipients_per_message', '0'],
    ['daily_send_cap_per_inbox', 'x'],
    ['allowed_recipient_domains', 'not a domain'],
  ])('refuses a malformed %s', async (name, value) => {
    const { browser, at, policies } = await arrangeOwner();
    await browser.open(at);
    const refused = await browser.submit(at, { ...FORM, [name]: value });
    expect(refused.statusCode).toBe(400);
    expect((await policies()).require_send_approval).toBe('off');
  });

  test('is not available to a developer', async () => {
    const { organizationId } = await createOrganization(app.worker);
    const userId = await createTestUser(app.worker, { organizationId, role: 'developer' });
    const browser = createPageClient(app);
    browser.cookies.set('session', (await createTestSession(app.worker, userId)).token);
    expect((await browser.open('/settings/sending')).statusCode).toBe(403);
  });
});
