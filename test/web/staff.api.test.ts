import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import type { StaffRole } from '../../domain/staff/staff-scope.ts';
import { newId } from '../../platform/ids.ts';
import { createAccountQuickly } from '../support/accounts.ts';
import { createOrganization } from '../support/organizations.ts';
import { arrangeAmbiguousSend } from '../support/outbound-mail.ts';
import { createPageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';
import { createFailedEmail, createTestEndpoint } from '../support/staff-operations.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

/** A browser of a signed-in staff member. */
async function openConsole(role: StaffRole = 'admin') {
  const staff = await createStaff(app, { role });
  const browser = createPageClient(app);
  browser.cookies.set('session', staff.token);
  return { ...staff, browser };
}

describe('the console', () => {
  test('leads to the sign-in, and shows nothing to others', async () => {
    const browser = createPageClient(app);
    await browser.open('/admin/log');
    expect(browser.path).toBe('/login?next=%2Fadmin%2Flog');
    const { token } = await createAccountQuickly(app);
    browser.cookies.set('session', token);
    const refused = await browser.open('/admin/log');
    expect(refused.statusCode).toBe(403);
    expect(refused.body).not.toContain('Changes by staff');
  });

  test('sets a toggle, with a reason, and shows the entry of the log', async () => {
    const { browser } = await openConsole();
    const page = await browser.open('/admin/toggles');
    expect(page.body).toContain('<button class="danger">Turn off</button>');
    // On, as it was: a toggle holds for the whole database, and other files run beside this one.
    const fields = { name: 'inbox_creation', enabled: 'true' };
    expect((await browser.submit('/admin/toggles', { ...fields, note: '' })).statusCode).toBe(400);
    await browser.open('/admin/toggles');
    const note = `Drill ${newId('request')}`;
    const set = await browser.submit('/admin/toggles', { ...fields, note });
    expect(set.body).toContain('Done.');
    expect(set.body).toMatch(new RegExp(`toggle.switched_on</td>[\\s\\S]*?${note}`));
    const { browser: support } = await openConsole('support');
    const read = await support.open('/admin/toggles');
    expect(read.body).not.toContain('<form method="post" action="/admin/toggles">');
  });

  test('finds an organization, suspends and reinstates it, and changes what it is granted', async () => {
    const { email, organizationId } = await createAccountQuickly(app);
    const { browser } = await openConsole();
    const found = await browser.open(`/admin/organizations?q=${encodeURIComponent(email)}`);
    expect(found.body).toContain(`href="/admin/organizations/${organizationId}"`);
    const path = `/admin/organizations/${organizationId}`;
    const target = { target_type: 'organization', target_id: organizationId, reason: 'abuse' };

    await browser.open(path);
    const suspended = await browser.submit(`${path}/suspend`, { ...target, note: 'Sends <b>spam</b>' });
    expect(browser.path).toBe(`${path}?notice=done`);
    expect(suspended.body).toContain('<strong>suspended</strong>');
    expect(suspended.body).toMatch(/organization\.suspended<\/td>[\s\S]*?Sends &lt;b&gt;spam&lt;\/b&gt;/);
    const twice = await browser.submit(`${path}/suspend`, { ...target, note: 'Again' });
    expect(twice.statusCode).toBe(409);
    expect(twice.body).toContain(`<p>The organization ${organizationId} is already suspended for abuse.</p>`);
    // Its form is open, with what was entered.
    expect(twice.body).toMatch(/<details open><summary>Suspend<[\s\S]*?value="Again"/);
    expect(twice.body.match(/<details open>/g)).toHaveLength(1);
    const reinstated = await browser.submit(`${path}/reinstate`, { note: 'Settled' });
    expect(reinstated.body).toContain('<strong>active</strong>');

    const tier = await browser.submit(`${path}/tier`, { tier: 'business', note: 'Contract 12' });
    expect(tier.body).toContain('<dd>business</dd>');
    const override = { resource: 'messages_sent', limit: '7', kind: 'hard', expires_at: '2999-01-01' };
    const overridden = await browser.submit(`${path}/overrides`, { ...override, note: 'Trial' });
    expect(overridden.body).toMatch(
      /Messages sent<\/td><td[^>]*>0<\/td><td[^>]*>7<\/td><td[^>]*>hard<\/td><td[^>]*>override/,
    );
    const past = await browser.submit(`${path}/overrides`, {
      ...override,
      expires_at: '2001-01-01',
      note: 'Late',
    });
    expect(past.statusCode).toBe(400);
    expect(past.body).toContain('Expires on (UTC) must be in the future.');
    expect(past.body).toContain('value="2001-01-01"');
    const removed = await browser.submit(`${path}/overrides/remove`, { note: 'Over' });
    expect(removed.body).toContain('limit_override.removed');
    const owner = await browser.submit(`${path}/owner`, { user_id: newId('user'), note: 'Lost' });
    expect(owner.statusCode).toBe(404);
    expect(owner.body).toMatch(/<p>The member usr_\w{26} does not exist\.<\/p>/);
    expect((await browser.open(`/admin/organizations/${newId('organization')}`)).statusCode).toBe(404);
    expect((await browser.open('/admin/organizations/%00')).statusCode).toBe(400);
  });

  test('shows every suspension in force, however many were lifted before', async () => {
    const { organizationId } = await createAccountQuickly(app);
    const lifted = Array.from({ length: 120 }, () => newId('suspension'));
    await query(
      app.worker,
      sql`insert into suspensions (id, org_id, target_type, target_id, reason, note, actor_kind, actor_id, created_at,
        changed_at, settled_at, lifted_at)
      select id, ${organizationId}, 'organization', ${organizationId}, 'support', 'Drill', 'staff', 'usr_x', now(), now(),
        now(), now()
      from jsonb_array_elements_text(${JSON.stringify(lifted)}::jsonb) id returning id`,
    );
    const { browser } = await openConsole();
    const path = `/admin/organizations/${organizationId}`;
    const before = await browser.open(path);
    expect(before.body).toContain('None in force.');
    expect(before.body).toContain('The last 20 lifted');
    const target = { target_type: 'organization', target_id: organizationId, reason: 'policy' };
    const suspended = await browser.submit(`${path}/suspend`, { ...target, note: 'Ticket 8' });
    expect(suspended.body).not.toContain('None in force.');
    expect(suspended.body).toMatch(/<strong>policy<\/strong>: organization[\s\S]*?Ticket 8/);
  });

  test('lists organizations by status, tier and usage, page by page', async () => {
    const organizations = [await createAccountQuickly(app), await createAccountQuickly(app)];
    const [older = '', newer = ''] = organizations.map(({ organizationId }) => organizationId);
    const name = `Zeta ${newId('request')}`;
    await query(
      app.worker,
      sql`update organizations set name = ${name} where id = any(${[older, newer]}) returning id`,
    );
    const { browser } = await openConsole('support');
    const listed = await browser.open(
      `/admin/organizations?${new URLSearchParams({ q: name, limit: '1', tier: '' })}`,
    );
    expect(listed.body).toContain(newer);
    const next = /href="([^"]+)" rel="next"/.exec(listed.body)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const second = await browser.open(next);
    expect(second.body).toContain(older);
    expect(second.body).not.toContain(newer);
    expect((await browser.open('/admin/organizations?status=closed&tier=free')).body).not.toContain(newer);
    expect((await browser.open('/admin/organizations?top=api_calls')).statusCode).toBe(200);
    const page = await browser.open(`/admin/organizations/${newer}`);
    expect(page.body).not.toContain('<form method="post" action="/admin/organizations');
  });

  test('approves and rejects upgrade requests', async () => {
    const { browser } = await openConsole();
    for (const [action, tier] of [
      ['approve', 'developer'],
      ['reject', 'enterprise'],
    ] as const) {
      const { token, organizationId } = await createAccountQuickly(app);
      const wanted = action === 'approve' ? 'developer' : 'business';
      const body = { tier: wanted, note: 'We grow.' };
      const { id } = (await app.call('/org/upgrade-requests', { method: 'POST', token, body })).json();
      expect((await browser.open('/admin/requests')).body).toContain(organizationId);
      const decided = await browser.submit(`/admin/requests/${id}/${action}`, { note: 'Decided.' });
      expect(decided.body).toContain(`upgrade_request.${action === 'approve' ? 'approved' : 'rejected'}`);
      expect((await app.call('/org/limits', { token })).json()).toMatchObject({ tier });
    }
  });

  test('shows a person, and suspends, reinstates and helps them in', async () => {
    const { email, userId, token } = await createAccountQuickly(app);
    const { browser } = await openConsole();
    const listed = await browser.open(
      `/admin/people?q=${encodeURIComponent(email)}&status=&organization_id=`,
    );
    expect(listed.body).toContain(`href="/admin/people/${userId}"`);
    const path = `/admin/people/${userId}`;
    expect((await browser.open(path)).body).toContain(email);
    const support = await openConsole('support');
    expect((await support.browser.open(path)).body).not.toContain('revoke-sessions');
    const refused = await app.call(`${path}/revoke-sessions`, {
      method: 'POST',
      prefix: '',
      headers: { cookie: `session=${support.token}`, 'content-type': 'application/x-www-form-urlencoded' },
      raw: 'note=Lost+laptop',
    });
    expect(refused.statusCode).toBe(403);
    const ended = await browser.submit(`${path}/revoke-sessions`, { note: 'Lost laptop' });
    expect(ended.body).toMatch(/Lost laptop/);
    expect((await app.call('/user/me', { token })).statusCode).toBe(401);
    const suspended = await browser.submit(`${path}/suspend`, { note: 'Fraud' });
    expect(suspended.body).toContain('<strong>suspended</strong>');
    const reinstated = await browser.submit(`${path}/reinstate`, { note: 'Cleared' });
    expect(reinstated.body).toContain('<strong>active</strong>');
    expect((await browser.open(`/admin/people/${newId('user')}`)).statusCode).toBe(404);
  });

  test('adds staff, changes their role, and removes them', async () => {
    const { email, userId } = await createAccountQuickly(app);
    const { browser, userId: ownId } = await openConsole();
    const added = await browser.open('/admin/staff');
    expect(added.body).not.toContain(`value="${ownId}"`);
    await browser.submit('/admin/staff', { email, role: 'support', note: 'New colleague' });
    const csrf =
      /name="csrf" value="(?<csrf>[^"]+)"/.exec((await browser.open('/admin/staff')).body)?.groups ?? {};
    const change = { ...csrf, user_id: userId, note: 'Promoted' };
    await browser.post('/admin/staff/role', { ...change, role: 'admin' });
    expect((await browser.open('/admin/staff')).body).toMatch(new RegExp(`${email}</a>: admin`));
    await browser.post('/admin/staff/remove', change);
    expect((await browser.open('/admin/staff')).body).not.toContain(email);
    const { browser: support } = await openConsole('support');
    expect((await support.open('/admin/staff')).statusCode).toBe(403);
  });

  test('shows stuck work, and acts on one run and on many', async () => {
    const { organizationId } = await createAccountQuickly(app);
    const { browser } = await openConsole();
    const run = app.temporalRuns.add({
      workflowId: await arrangeAmbiguousSend(app.worker),
      type: 'sendMessage',
      searchAttributes: { OrgId: organizationId, Stage: 'needs_attention' },
    });
    const listed = await browser.open(
      `/admin/work?status=running&type=&stage=needs_attention&organization_id=${organizationId}&older_than_minutes=&failing=on`,
    );
    expect(listed.body).toContain(run.workflowId);
    expect((await browser.open('/admin/work?stage=nothing')).body).toContain('No runs.');

    const path = `/admin/work/run?${new URLSearchParams({ workflow_id: run.workflowId })}`;
    const shown = await browser.open(path);
    expect(shown.body).toContain('The relay has the message');
    const before = app.commands.length;
    const resolved = await browser.submit(path.replace('run?', 'run/resolve?'), {
      resolution: 'sent',
      note: 'In its log',
    });
    expect(browser.path).toBe(`${path}&notice=done`);
    expect(resolved.body).toMatch(/In its log/);
    expect(resolved.body).toContain('The action takes effect within seconds');
    expect(app.commands.slice(before)).toHaveLength(1);
    const unknown = await browser.open('/admin/work/run?workflow_id=send%2Fnothing');
    expect(unknown.statusCode).toBe(404);

    await browser.open(`/admin/work?stage=needs_attention&organization_id=${organizationId}`);
    const fields = { action: 'resolve', resolution: 'sent', note: 'All in its log' };
    const filter = `?stage=needs_attention&organization_id=${organizationId}`;
    const job = await browser.submit(`/admin/work/bulk${filter}`, fields);
    expect(browser.path).toMatch(/^\/admin\/work\/jobs\/sjb_/);
    expect(job.body).toContain('staff_job.created');
    const commands = app.commands.map((command) => JSON.stringify(command));
    expect(commands.at(-1)).toContain('runStaffJob');
    expect(job.body).toContain(organizationId);
  });

  test('resolves one recipient, and a list from the relay’s log', async () => {
    const { browser } = await openConsole();
    const { workflowId } = app.temporalRuns.add({
      workflowId: await arrangeAmbiguousSend(app.worker),
      type: 'sendMessage',
      searchAttributes: { Stage: 'needs_attention' },
    });
    const run = new URLSearchParams({ workflow_id: workflowId });
    await browser.open(`/admin/work/run?${run}`);
    const fields = { resolution: 'sent', recipient: '1', note: 'In its log' };
    await browser.submit(`/admin/work/run/resolve?${run}`, fields);
    expect(app.commands.at(-1)).toMatchObject({ signal: { args: [{ resolution: 'sent', recipient: 1 }] } });

    await browser.open('/admin/work');
    const list = '<msg_1@agents.example> sent\n\n msg_2 resend 1 \nmsg_2 sent ada@people.example\n';
    const job = await browser.submit('/admin/work/resolve-list', { list, note: 'Relay crashed' });
    expect(browser.path).toMatch(/^\/admin\/work\/jobs\/sjb_/);
    expect(job.body).toContain('Relay crashed');
    const rows = await query(
      app.worker,
      sql`select items from staff_jobs where id = ${browser.path.split(/[/?]/)[4]}`,
    );
    expect(rows).toEqual([
      {
        items: [
          { message: '<msg_1@agents.example>', resolution: 'sent' },
          { message: 'msg_2', resolution: 'resend', recipient: 1 },
          { message: 'msg_2', resolution: 'sent', email: 'ada@people.example' },
        ],
      },
    ]);
  });

  test('explains an action on many runs that it refuses, and starts nothing', async () => {
    const { browser } = await openConsole();
    const stage = `refused_${randomUUID().replaceAll('-', '').replaceAll(/\d/g, 'x')}`;
    app.temporalRuns.add({
      workflowId: `send/${newId('message')}`,
      type: 'sendMessage',
      searchAttributes: { Stage: stage },
    });
    const before = app.commands.length;
    for (const [path, body, reason] of [
      ['bulk', { action: 'resolve', resolution: '' }, 'Resolving needs a decision.'],
      ['bulk', { action: 'terminate' }, 'The filter would select every run of the service.'],
      ['resolve-list', { list: 'msg_1 sent\nmsg_2 perhaps' }, 'Line 2 cannot be read.'],
      ['resolve-list', { list: ' \n' }, 'The list has 0 lines'],
    ] as const) {
      const filter = body.action === 'resolve' ? `?stage=${stage}` : '';
      await browser.open(`/admin/work${filter}`);
      const refused = await browser.submit(`/admin/work/${path}${filter}`, { ...body, note: 'x' });
      expect(refused.statusCode).toBe(400);
      expect(refused.body).toContain(reason);
      expect(refused.body).not.toContain(`: ${reason}`);
    }
    expect(app.commands).toHaveLength(before);
  });

  test('leads past runs that do not fail', async () => {
    const { organizationId } = await createAccountQuickly(app);
    const { browser } = await openConsole();
    for (let index = 0; index < 505; index += 1)
      app.temporalRuns.add({
        workflowId: `send/${newId('message')}`,
        type: 'sendMessage',
        searchAttributes: { OrgId: organizationId, Stage: 'sending' },
      });
    const page = await browser.open(`/admin/work?failing=on&organization_id=${organizationId}&limit=2`);
    expect(page.body).toContain('None among the runs looked at so far.');
    expect(page.body).toMatch(/href="\/admin\/work\?[^"]*cursor=/);
  });

  test('offers support no action that is for admins', async () => {
    const { browser } = await openConsole('support');
    const { workflowId } = app.temporalRuns.add({
      workflowId: `send/${newId('message')}`,
      type: 'sendMessage',
      searchAttributes: { Stage: 'deferred' },
    });
    const run = new URLSearchParams({ workflow_id: workflowId });
    const page = await browser.open(`/admin/work/run?${run}`);
    expect(page.body).toContain('action="/admin/work/run/retry?');
    expect(page.body).not.toContain('action="/admin/work/run/terminate?');
    const { csrf = '' } = /name="csrf" value="(?<csrf>[^"]+)"/.exec(page.body)?.groups ?? {};
    const forced = await browser.post(`/admin/work/run/terminate?${run}`, { csrf, note: 'x' });
    expect(forced.statusCode).toBe(403);
  });

  test('announces something to an organization, and withdraws it', async () => {
    const { token, organizationId } = await createAccountQuickly(app);
    const { browser } = await openConsole();
    await browser.open('/admin/announcements');
    const title = `Maintenance ${newId('request')}`;
    const fields = {
      title,
      text: 'On Sunday.',
      audience: 'organizations',
      org_ids: organizationId,
      delivery: 'shown',
      note: 'Plan 3',
      tier: '',
      starts_at: '',
      ends_at: '',
    };
    const late = await browser.submit('/admin/announcements', { ...fields, ends_at: '2001-01-01T00:00' });
    expect(late.statusCode).toBe(400);
    const announced = await browser.submit('/admin/announcements', fields);
    expect(announced.body).toContain(`<strong>${title}</strong> (shown to organizations)`);
    const shown = async () =>
      (await app.call('/notices', { token })).json().data.map((notice: { title: string }) => notice.title);
    expect(await shown()).toContain(title);
    const own = announced.body.slice(announced.body.indexOf(title));
    const [, action = ''] = /action="(\/admin\/announcements\/ntc_[^"]+)"/.exec(own) ?? [];
    const withdrawn = await browser.submit(action, { note: 'Over' });
    expect(withdrawn.body).toContain('withdrawn');
    expect(await shown()).not.toContain(title);
  });

  test('takes no form without a reason', async () => {
    const { browser } = await openConsole();
    const { organizationId, userId } = await createAccountQuickly(app);
    const organization = `/admin/organizations/${organizationId}`;
    const announcement = {
      title: 'T',
      text: 'T',
      audience: 'organizations',
      org_ids: organizationId,
    };
    const forms: [page: string, action: string, fields: Record<string, string>][] = [
      ['/admin/toggles', '/admin/toggles', { name: 'inbox_creation', enabled: 'true' }],
      [
        organization,
        `${organization}/suspend`,
        { target_type: 'organization', target_id: organizationId, reason: 'policy' },
      ],
      [organization, `${organization}/tier`, { tier: 'developer' }],
      [
        organization,
        `${organization}/overrides`,
        { resource: 'inboxes', limit: '1', kind: 'hard', expires_at: '' },
      ],
      [`${organization}/impersonations`, `${organization}/impersonations`, { duration_minutes: '5' }],
      [`/admin/people/${userId}`, `/admin/people/${userId}/suspend`, {}],
      ['/admin/staff', '/admin/staff', { email: 'absent@example.test', role: 'support' }],
      [
        '/admin/announcements',
        '/admin/announcements',
        { ...announcement, tier: '', delivery: 'shown', starts_at: '', ends_at: '' },
      ],
    ];
    const accepted: string[] = [];
    // Nothing, blanks, and characters that are not shown.
    for (const [page, action, fields] of forms)
      for (const note of ['', ' \t', '\u200b\u2060', '\u00a0']) {
        await browser.open(page);
        const { statusCode } = await browser.submit(action, { ...fields, note });
        if (statusCode !== 400) accepted.push(`${action} with ${JSON.stringify(note)}: ${statusCode}`);
      }
    expect(accepted).toEqual([]);
    const changes = await query(
      app.worker,
      sql`select action from audit_entries where org_id = ${organizationId} and actor_kind = 'staff'`,
    );
    expect(changes).toEqual([]);
  });

  test('takes nothing that the API would refuse', async () => {
    const { browser } = await openConsole();
    const { organizationId } = await createAccountQuickly(app);
    const page = `/admin/organizations/${organizationId}`;
    const override = { resource: 'messages_sent', limit: '5', kind: 'hard', expires_at: '', note: 'Trial' };
    const announcement = {
      title: 'Maintenance',
      text: 'On Sunday.',
      audience: 'organizations',
      org_ids: organizationId,
      tier: '',
      delivery: 'mailed',
      starts_at: '',
      ends_at: '',
      note: 'Planned',
    };
    const ids = Array.from({ length: 101 }, () => newId('organization')).join(' ');
    const attempts: [page: string, action: string, fields: Record<string, string>][] = [
      [page, `${page}/overrides`, { ...override, limit: '9999999999999999' }],
      [page, `${page}/overrides`, { ...override, limit: '-1' }],
      [page, `${page}/overrides`, { ...override, expires_at: '2999-02-31' }],
      ...[
        { title: 'Maintenance\r\nBcc: someone@example.test' },
        { title: ' ' },
        { text: '\n' },
        { starts_at: '9999-12-31T23:59' },
        { starts_at: '2027-02-31T10:00' },
        { org_ids: ids },
        { org_ids: '' },
        { audience: 'all', tier: 'free', org_ids: '', starts_at: '3000-01-01T00:00' },
      ].map((fields): [string, string, Record<string, string>] => [
        '/admin/announcements',
        '/admin/announcements',
        { ...announcement, ...fields } as Record<string, string>,
      ]),
    ];
    for (const [from, action, fields] of attempts) {
      await browser.open(from);
      expect({ fields, status: (await browser.submit(action, fields)).statusCode }).toEqual({
        fields,
        status: 400,
      });
    }
    const { token } = await createStaff(app);
    const body = { title: 'T', text: 'T', audience: 'all', delivery: 'mailed', note: 'Planned' };
    const later = await app.call('/admin/notifications', {
      method: 'POST',
      token,
      body: { ...body, starts_at: '9999-12-31T23:59:59Z' },
    });
    expect(later.json()).toMatchObject({ status: 400, code: 'validation_error' });
    const rows = await query(
      app.worker,
      sql`select resource from limit_overrides where org_id = ${organizationId}
      union all select id from announcements where ${organizationId} = any (organization_ids)`,
    );
    expect(rows).toEqual([]);
  });

  test('shows the health of the service', async () => {
    const { browser } = await openConsole('support');
    const page = await browser.open('/admin/health');
    expect(page.statusCode).toBe(200);
    for (const name of ['database', 'temporal', 'storage'])
      expect(page.body).toContain(`<td data-label="Name">${name}</td>`);
  });

  test('shows the log', async () => {
    const { browser } = await openConsole('support');
    const page = await browser.open('/admin/log?action=organization.never');
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain('No changes.');
    expect(page.body).toContain('aria-current="page">Log');
  });
});

describe('operations in the console', () => {
  const note = 'Ticket 4711';

  test('send the selected failed emails again, and say which are left out', async () => {
    const { organizationId, userId } = await createAccountQuickly(app);
    const emails = [1, 2].map(() => createFailedEmail(app.worker, { organizationId, ownerId: userId }));
    const [first = '', second = ''] = await Promise.all(emails);
    const expired = await createFailedEmail(
      app.worker,
      { organizationId, ownerId: userId },
      { template: 'reset-password', createdAt: new Date(Date.now() - 7_200_000) },
    );
    const { browser } = await openConsole('support');
    const path = `/admin/emails?organization_id=${organizationId}`;
    const retry = `/admin/emails/retry?organization_id=${organizationId}`;
    const listed = await browser.open(path);
    expect(listed.body).toContain('550 5.7.1 relaying denied');
    expect(listed.body).toContain(`name="id" value="${first}"`);
    expect(listed.body).not.toContain(`name="id" value="${expired}"`);
    const none = await browser.submit(retry, { note });
    expect([none.statusCode, none.body]).toEqual([400, expect.stringContaining('No email is selected')]);
    await browser.open(path);
    const sent = await browser.submit(retry, { id: first, note });
    expect(sent.body).toContain('Done.');
    expect(sent.body).toMatch(new RegExp(`system_email.retried</td>[\\s\\S]*?${note}`));
    await browser.open(path);
    const refused = await browser.submit(retry, { id: [second, expired], note: 'x'.repeat(2_001) });
    expect(refused.body).toContain('Use at most 2000 characters.');
    expect(refused.body).toContain(`name="id" value="${second}" checked`);
    const late = await browser.submit(retry, { id: expired, note });
    expect(late.statusCode).toBe(409);
    expect(late.body).toMatch(/1 of 1 emails are not sent again\. ntf_\w{26}: The link in the email stopped/);
    const pending = await browser.open(`${path}&status=pending`);
    expect(pending.body).toContain(first);
    expect(pending.body).not.toContain(second);
    expect(pending.body).not.toContain('<input type="checkbox"');
  });

  test('postpone a retention, and replay or drop the backlog of an endpoint', async () => {
    const organization = await createOrganization(app.worker);
    const { organizationId, token } = organization;
    const endpoint = await createTestEndpoint(app, token);
    await app.call(`/webhooks/endpoints/${endpoint}/test`, { method: 'POST', token, body: {} });
    await query(
      app.worker,
      sql`insert into retention_policies (org_id, retention_days, applied_days, applied_since, steps, changed_at, created_at)
      values (${organizationId}, 30, 30, now(), '[]', now(), now()) returning org_id`,
    );
    const { browser } = await openConsole();
    const base = `/admin/organizations/${organizationId}`;
    const page = await browser.open(`${base}/operations`);
    expect(page.body).toContain('Messages older than <strong>30</strong> days');
    expect(page.body).toContain('1 pending, 0 held');
    const postponed = await browser.submit(`${base}/operations/postpone-retention`, { days: '7', note });
    expect(postponed.body).toContain('Nothing is deleted before');
    const tooLong = await browser.submit(`${base}/operations/postpone-retention`, { days: '99', note });
    expect(tooLong.statusCode).toBe(400);
    expect(tooLong.body).toMatch(/Days must be a whole number from 1 to \d+\./);
    const late = { since: '2999-01-01T00:00', note };
    expect((await browser.submit(`${base}/operations/replay-endpoint`, late)).body).toContain(
      'Events since (UTC) must be in the past.',
    );
    await browser.open(`${base}/operations`);
    const since = { since: '2026-01-01T00:00', only_failed: 'on' };
    const replayed = await browser.submit(`${base}/operations/replay-endpoint`, { ...since, note });
    expect(replayed.body).toMatch(/The job <code>whj_/);
    const dropped = await browser.submit(`${base}/operations/drop-backlog`, { note });
    expect(dropped.body).toContain('webhook_endpoint.deliveries_canceled');
    const { browser: support } = await openConsole('support');
    const read = await support.open(`${base}/operations`);
    expect([read.statusCode, read.body.includes(`action="${base}`)]).toEqual([200, false]);
  });

  test('retry a given-up command from the page about health', async () => {
    const { organizationId } = await createOrganization(app.worker);
    const [command] = await query<{ id: string }>(
      app.worker,
      sql`insert into outbox (org_id, command, priority, available_at, created_at, dead_at, last_error)
      values (${organizationId}, ${JSON.stringify({ signal: { workflowId: `send/${organizationId}` } })}::jsonb, 3, now(),
        now(), '2020-01-01', 'no namespace') returning id::text as id`,
    );
    const { browser } = await openConsole('support');
    const page = await browser.open('/admin/health');
    expect(page.body).toContain(`send/${organizationId}`);
    const retried = await browser.post('/admin/health/retry-commands', {
      id: command?.id ?? '',
      note,
      csrf: /name="csrf" value="([^"]+)"/.exec(page.body)?.[1] ?? '',
    });
    expect(retried.headers.location).toBe('/admin/health?notice=done');
    expect((await browser.open('/admin/health')).body).not.toContain(`send/${organizationId}`);
    await query(app.worker, sql`delete from outbox where org_id = ${organizationId} returning id`);
  });

  test('show the evidence beside the decision about an ambiguous send', async () => {
    const workflowId = await arrangeAmbiguousSend(app.worker);
    const [row] = await query<{ organizationId: string; rfcMessageId: string }>(
      app.worker,
      sql`select org_id as "organizationId", rfc_message_id as "rfcMessageId" from messages
      where id = ${workflowId.replace('send/', '')}`,
    );
    app.temporalRuns.add({
      workflowId,
      type: 'sendMessage',
      searchAttributes: { OrgId: row?.organizationId ?? '', Stage: 'needs_attention' },
    });
    const { browser } = await openConsole('support');
    const page = await browser.open(`/admin/work/run?${new URLSearchParams({ workflow_id: workflowId })}`);
    expect(page.body).toMatch(
      /Evidence[\s\S]*<td[^>]*>1<\/td><td[^>]*>people.example<\/td><td[^>]*><strong>unknown/,
    );
    expect(page.body).toContain(row?.rfcMessageId);
    expect(page.body).toContain('action="/admin/work/run/resolve?');
    expect(page.body).not.toContain('b@people.example');
  });
});
