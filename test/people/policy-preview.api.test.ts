import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createAccountQuickly, type QuickAccount } from '../support/accounts.ts';
import { createPageClient } from '../support/page-client.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

interface Effect {
  user_id: string;
  policy: string;
  locked_out: boolean;
  effect: string;
}

let owner: QuickAccount;
let memberId: string;
beforeEach(async () => {
  owner = await createAccountQuickly(app);
  memberId = await createTestUser(app.worker, { organizationId: owner.organizationId, role: 'developer' });
});

async function preview(body: object): Promise<Effect[]> {
  const response = await app.call('/org/policies/preview', { method: 'POST', token: owner.token, body });
  expect(response.statusCode).toBe(200);
  return response.json<{ effects: Effect[] }>().effects;
}

describe('the preview of policies', () => {
  test('names the members without a second factor, and changes nothing', async () => {
    await query(
      app.worker,
      sql`insert into mfa_enrollments (id, user_id, type, name, secret, confirmed_at, created_at)
      values (${`mfa_${owner.userId.slice(4)}`}, ${owner.userId}, 'totp', 'App', ''::bytea, now(), now())`,
    );
    expect(await preview({})).toEqual([]);
    expect(await preview({ require_mfa: true })).toEqual([
      expect.objectContaining({ user_id: memberId, policy: 'require_mfa', locked_out: false }),
    ]);
    const policies = await app.call('/org/policies', { token: owner.token });
    expect(policies.json()).toMatchObject({ require_mfa: false });
  });

  test('names the members whose newest session is outside the ranges', async () => {
    await createTestSession(app.worker, memberId, { ip: '198.51.100.7' });
    const effects = await preview({ allowed_cidrs: ['192.0.2.0/24'] });
    expect(effects).toEqual([
      expect.objectContaining({ user_id: memberId, policy: 'allowed_cidrs', locked_out: true }),
    ]);
    expect(effects[0]?.effect).toContain('198.51.100.7');
  });

  test('names the members whom single sign-on would lock out', async () => {
    const locked = await preview({ enforce_sso: true });
    expect(locked).toHaveLength(2);
    expect(locked.every((effect) => effect.policy === 'enforce_sso' && effect.locked_out)).toBe(true);
    await query(
      app.worker,
      sql`insert into sso_configurations (id, org_id, type, status, name, domains, default_role, created_at, updated_at)
      values (${`sso_${owner.userId.slice(4)}`}, ${owner.organizationId}, 'oidc', 'active', 'x', '{example.test}',
        'viewer', now(), now())`,
    );
    const found = await preview({ enforce_sso: true });
    expect(found.find(({ user_id }) => user_id === memberId)).toMatchObject({ locked_out: false });
  });

  test('shows members of other organizations to no one, and needs the permission', async () => {
    const stranger = await createAccountQuickly(app);
    const effects = await preview({ enforce_sso: true });
    expect(effects.map(({ user_id }) => user_id)).not.toContain(stranger.userId);
    const { token } = await createTestSession(app.worker, memberId);
    const refused = await app.call('/org/policies/preview', { method: 'POST', token, body: {} });
    expectProblem(refused, 'permission_denied');
  });

  test('rejects a malformed range', async () => {
    const response = await app.call('/org/policies/preview', {
      method: 'POST',
      token: owner.token,
      body: { allowed_cidrs: ['nowhere'] },
    });
    expectProblem(response, 'validation_error');
  });

  test('is shown on a page before the form is saved', async () => {
    const browser = createPageClient(app);
    browser.cookies.set('session', owner.token);
    const org = `?org=${owner.organizationId}`;
    const page = await browser.open(`/settings/policies${org}`);
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.body) ?? [];
    const shown = await browser.post(`/settings/policies/preview${org}`, {
      csrf,
      require_mfa: 'on',
      session_max_age_hours: '',
      allowed_cidrs: '',
    });
    expect(shown.body).toContain('Has to add a second factor at the next sign-in.');
    const refused = await browser.post(`/settings/policies/preview${org}`, {
      csrf,
      session_max_age_hours: '',
      allowed_cidrs: 'nowhere',
    });
    expect(refused.statusCode).toBe(400);
    const sso = await browser.post(`/settings/single-sign-on/policy/preview${org}`, {
      csrf,
      enforce_sso: 'on',
    });
    expect(sso.body).toContain('locked out');
  });
});
