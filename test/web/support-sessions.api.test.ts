import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { listSourceFiles } from '../guards/import-graph.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { setPolicies } from '../support/policies.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { createStaff } from '../support/staff.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

/** Forms that belong to the member of staff, not to the organization. */
const OWN_FORMS = ['/impersonation/end', '/logout'];
/** A form that only searches changes nothing. */
const withoutSearches = (html: string) => html.replace(/<form[^>]* method="get".*?<\/form>/gs, '');
const formsOf = (html: string) =>
  [...withoutSearches(html).matchAll(/<(?:form|button|input|select|textarea)\b[^>]*>/g)].map(([tag]) => tag);
const actionsOf = (html: string) =>
  [...withoutSearches(html).matchAll(/<form[^>]* action="([^"]*)"/g)].map(([, to]) => to);

/** An organization with something to change on each of its pages, and a message that waits for approval. */
async function arrange() {
  const organization = await createOrganization(app.worker);
  const { organizationId, token, ownerId } = organization;
  const inbox = await createInbox(app.worker, organization);
  await setPolicies(app.worker, organizationId, {
    require_send_approval: 'all',
    allowed_cidrs: ['0.0.0.0/0', '::/0'],
  });
  await query(
    app.worker,
    sql`insert into members (org_id, user_id, role, created_at)
    select ${organizationId}, id, 'developer', now() from users where id <> ${ownerId} limit 1 returning org_id`,
  );
  const content = { to: ['ada@people.example'], subject: 'Offer', text_body: 'Dear Ada' };
  const sent = await app.call(`/inboxes/${inbox.id}/messages`, { method: 'POST', token, body: content });
  const { token: session } = await createTestSession(app.worker, ownerId, { factors: ['totp'] });
  await app.call('/org/invitations', {
    method: 'POST',
    token: session,
    body: { email: 'new@people.example', role: 'viewer' },
  });
  return { ...organization, draftId: sent.json().id as string, session };
}

async function beginSupportSession({ organizationId }: TestOrganization, { write }: { write: boolean }) {
  const staff = await createStaff(app, { role: write ? 'admin' : 'support' });
  const browser = createPageClient(app);
  browser.cookies.set('session', staff.token);
  const path = `/admin/organizations/${organizationId}/impersonations`;
  await browser.open(path);
  const fields = { note: 'Ticket 7', duration_minutes: '30', ...(write ? { write: 'on' } : {}) };
  await browser.submit(path, fields);
  return browser;
}

/** Every page that shows an organization: their routes are not in the OpenAPI document. */
const PAGES = listSourceFiles(['web'])
  .filter((file) => !file.startsWith('web/staff/'))
  .flatMap((file) => readFileSync(file, 'utf8').split('app.get(').slice(1))
  .filter((route) => /\bpermission\b/.test(route.slice(0, 300)))
  // Streams of parts of pages.
  .filter((route) => !/\bheldOpen\b/.test(route.slice(0, 300)))
  .map((route) => /'(\/[^']*)'/.exec(route)?.[1] ?? '');

describe('a support session', () => {
  test.each([{ write: false }, { write: true }])('%j has no form on any page', async ({ write }) => {
    const world = await arrange();
    const browser = await beginSupportSession(world, { write });
    const seen: string[] = [];
    for (const url of PAGES) {
      const page = await browser.open(`${url.replace(':id', world.draftId)}?org=${world.organizationId}`);
      if (page.statusCode !== 200 || !page.body.includes('aria-label="Impersonation"')) continue;
      seen.push(url);
      expect({ url, forms: actionsOf(page.body).filter((to) => !OWN_FORMS.includes(to ?? '')) }).toEqual({
        url,
        forms: [],
      });
      // What is left are the buttons of the banner and the header, with their hidden fields.
      const fields = formsOf(page.body).filter((tag) => !/^<(?:form|button)|type="hidden"/.test(tag));
      expect({ url, fields }).toEqual({ url, fields: [] });
    }
    expect(seen).toEqual(
      expect.arrayContaining([
        '/members',
        '/settings',
        '/settings/environments',
        '/settings/policies',
        '/settings/retention',
        '/audit-log',
        '/settings/single-sign-on',
        '/settings/sending',
        '/approvals',
        '/approvals/:id',
      ]),
    );
  });

  test('shows roles and policies as text', async () => {
    const world = await arrange();
    const browser = await beginSupportSession(world, { write: false });
    const org = `?org=${world.organizationId}`;
    const members = await browser.open(`/members${org}`);
    expect(members.body).toContain('<td data-label="Role">developer</td>');
    expect(members.body).toMatch(/new@people.example<\/td><td data-label="Role">viewer/);
    const access = await browser.open(`/settings/policies${org}`);
    expect(access.body).toContain('<dt>Calls from</dt><dd>0.0.0.0/0, ::/0</dd>');
    expect(access.body).not.toContain('/settings/closing');
    expect((await browser.open(`/settings/closing${org}`)).statusCode).toBe(403);
    const policies = await browser.open(`/settings/sending?org=${world.organizationId}`);
    expect(policies.body).toMatch(/<dt>Approval [^<]*<\/dt><dd>always<\/dd>/);
  });

  test('leaves the forms of the people of the organization as they are', async () => {
    const world = await arrange();
    const browser = createPageClient(app);
    browser.cookies.set('session', world.session);
    for (const [path, action] of [
      ['/members', '/members/role'],
      ['/members', '/members/invitations'],
      ['/settings', '/settings'],
      ['/settings/policies', '/settings/policies'],
      ['/settings/closing', '/settings/closing'],
    ] as const) {
      const page = await browser.open(`${path}?org=${world.organizationId}`);
      expect(actionsOf(page.body).map((to) => to?.split('?')[0])).toContain(action);
    }
    const draft = await browser.open(`/approvals/${world.draftId}?org=${world.organizationId}`);
    expect(draft.body).toContain('Approve and send');
  });
});

describe('a suspended organization', () => {
  const suspend = (organizationId: string, reason: string, token: string, action = 'suspend') =>
    app.call(`/admin/orgs/${organizationId}/${action}`, {
      method: 'POST',
      token,
      body: { reason, note: 'Secret note of the staff' },
    });

  test('shows its people a banner on every page, with the reason, until it is reinstated', async () => {
    const world = await arrange();
    const { organizationId } = world;
    const staff = await createStaff(app);
    const browser = createPageClient(app);
    browser.cookies.set('session', world.session);
    const banner = 'This organization has been suspended';
    const path = `/settings?org=${organizationId}`;
    expect((await browser.open(path)).body).not.toContain(banner);
    await suspend(organizationId, 'payment', staff.token);
    await suspend(organizationId, 'policy', staff.token);
    for (const url of [
      path,
      `/approvals?org=${organizationId}`,
      `/settings/single-sign-on?org=${organizationId}`,
    ]) {
      const { body } = await browser.open(url);
      expect(body).toMatch(
        /has been suspended<\/strong> since [\d-]+, because a payment is overdue, and because its use does not follow/,
      );
      // The note is in the audit log, which not every member reads.
      expect(/<aside class="suspension"[\s\S]*?<\/aside>/.exec(body)?.[0]).not.toContain('Secret note');
      // Without billing there is nothing to pay on a page.
      expect(body).not.toContain('Pay the open invoice');
    }
    expect((await browser.open('/account')).body).toContain('>suspended</span>');
    await suspend(organizationId, 'payment', staff.token, 'reinstate');
    expect((await browser.open(path)).body).not.toContain('a payment is overdue');
    await suspend(organizationId, 'policy', staff.token, 'reinstate');
    expect((await browser.open(path)).body).not.toContain(banner);
  });

  test('shows none for another organization of the same person, nor for a suspended inbox', async () => {
    const [world, other] = [await arrange(), await arrange()];
    const staff = await createStaff(app);
    await suspend(other.organizationId, 'abuse', staff.token);
    const browser = createPageClient(app);
    browser.cookies.set('session', world.session);
    const page = await browser.open(`/settings?org=${world.organizationId}`);
    expect(page.body).not.toContain('aria-label="Suspension"');
  });
});
