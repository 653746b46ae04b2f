import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { DEFAULT_POLICIES, type Policies } from '../../domain/policies/find-policies.ts';
import { findWeakenedPolicies } from '../../domain/policies/weakened-policies.ts';
import { readAccountMail } from '../support/account-mail.ts';
import { newAddress, newNetwork, PASSWORD } from '../support/accounts.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let organization: TestOrganization;
let owner: string;
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  owner = (await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] })).token;
});

const readEmails = () =>
  query<{ template: string; userId: string; params: Record<string, unknown> }>(
    app.worker,
    sql`select template, user_id as "userId", params from notifications
    where org_id = ${organization.organizationId} and template <> 'invitation' order by id`,
  );
const patch = (path: string, body: object, token = owner) => app.call(path, { method: 'PATCH', token, body });
const emailOf = (userId: string) => `${userId}@example.test`;

describe('owners get an email', () => {
  test('about policies that protect less than before: which ones, by whom and from where', async () => {
    const second = await createTestUser(app.worker, { ...organization, role: 'owner' });
    const strict = { require_mfa: true, session_max_age_hours: 8, max_recipients_per_message: 5 };
    expect((await patch('/org/policies', strict)).statusCode).toBe(200);
    expect(await readEmails()).toEqual([]);
    const change = { require_mfa: false, session_max_age_hours: null, max_recipients_per_message: 3 };
    expect((await patch('/org/policies', change)).statusCode).toBe(200);
    const emails = await readEmails();
    expect(emails.map(({ userId }) => userId).sort()).toEqual([organization.ownerId, second].sort());
    expect(emails[0]).toMatchObject({
      template: 'policies-weakened',
      params: {
        organizationName: 'Test',
        by: emailOf(organization.ownerId),
        ip: '127.0.0.1',
        policies: [
          { policy: 'require_mfa', before: 'on', after: 'off' },
          { policy: 'session_max_age_hours', before: '8', after: 'none' },
        ],
      },
    });
  });

  test('none about a change of policies that fails', async () => {
    await patch('/org/policies', { require_send_approval: 'all' }, organization.token);
    expectProblem(
      await patch('/org/policies', { require_send_approval: 'off', allowed_cidrs: ['192.0.2.0/24'] }),
      'conflict',
    );
    expectProblem(
      await patch('/org/policies', { require_send_approval: 'external' }, organization.token),
      'permission_denied',
    );
    expect(await readEmails()).toEqual([]);
  });

  test('about a new owner, who gets it as well, and a former one', async () => {
    const userId = await createTestUser(app.worker, { ...organization, role: 'viewer' });
    const member = `/org/members/${userId}`;
    expect((await patch(member, { role: 'admin' })).statusCode).toBe(200);
    expect(await readEmails()).toEqual([]);
    expect((await patch(member, { role: 'owner' })).statusCode).toBe(200);
    expect((await patch(member, { role: 'owner' })).statusCode).toBe(200);
    expect((await patch(member, { role: 'developer' })).statusCode).toBe(200);
    const emails = await readEmails();
    const recipients = (template: string) =>
      emails.filter((email) => email.template === template).map((email) => email.userId);
    expect(recipients('owner-added').sort()).toEqual([organization.ownerId, userId].sort());
    expect(recipients('owner-removed').sort()).toEqual([organization.ownerId, userId].sort());
    expect(emails.at(-1)?.params).toMatchObject({ owner: emailOf(userId), role: 'developer' });
  });

  test('about an owner who was removed', async () => {
    const userId = await createTestUser(app.worker, { ...organization, role: 'owner' });
    const removed = await app.call(`/org/members/${userId}`, { method: 'DELETE', token: owner });
    expect(removed.statusCode).toBe(204);
    expect((await readEmails()).map((email) => email.userId).sort()).toEqual(
      [organization.ownerId, userId].sort(),
    );
  });

  test('about an accepted invitation to become an owner', async () => {
    const email = newAddress();
    const body = { email, role: 'owner' };
    expect((await app.call('/org/invitations', { method: 'POST', token: owner, body })).statusCode).toBe(201);
    const token = (await readAccountMail(app, email)).at(-1)?.token;
    const accepted = await app.call('/invitations/accept', {
      method: 'POST',
      headers: newNetwork(),
      body: { token, password: PASSWORD },
    });
    expect(accepted.statusCode).toBe(200);
    const emails = await readEmails();
    expect(emails).toHaveLength(2);
    for (const { template, params } of emails) {
      expect(template).toBe('owner-added');
      expect(params).toMatchObject({ owner: email, how: 'invitation', by: emailOf(organization.ownerId) });
    }
  });

  test('about a transfer: other owners, too', async () => {
    const [other, next] = await Promise.all([
      createTestUser(app.worker, { ...organization, role: 'owner' }),
      createTestUser(app.worker, { ...organization, role: 'admin' }),
    ]);
    const body = { user_id: next };
    const response = await app.call('/org/transfer-ownership', { method: 'POST', token: owner, body });
    expect(response.statusCode).toBe(204);
    expect((await readEmails()).map((email) => email.userId).sort()).toEqual(
      [organization.ownerId, other, next].sort(),
    );
  });
});

describe('a policy protects less', () => {
  test.each<[keyof Policies, unknown, unknown, boolean]>([
    ['requireMfa', true, false, true],
    ['requireMfa', false, true, false],
    ['enforceSso', true, false, true],
    ['ssoSatisfiesMfa', false, true, true],
    ['ssoSatisfiesMfa', true, false, false],
    ['sessionMaxAgeHours', 8, 9, true],
    ['sessionMaxAgeHours', 8, null, true],
    ['sessionMaxAgeHours', null, 8, false],
    ['allowedCidrs', ['192.0.2.0/24'], [], true],
    ['allowedCidrs', ['192.0.2.0/24'], ['192.0.2.0/24', '198.51.100.1/32'], true],
    ['allowedCidrs', ['192.0.2.0/24'], ['192.0.2.7/32'], false],
    ['allowedCidrs', [], ['192.0.2.7/32'], false],
    ['maxRecipientsPerMessage', 1, 2, true],
    ['maxRecipientsPerMessage', 2, 1, false],
    ['allowedRecipientDomains', ['a.example'], [], true],
    ['allowedRecipientDomains', ['a.example'], ['b.example'], true],
    ['allowedRecipientDomains', ['a.example'], ['x.a.example'], false],
    ['allowedRecipientDomains', [], ['a.example'], false],
    ['blockedRecipientDomains', ['x.a.example'], [], true],
    ['blockedRecipientDomains', ['x.a.example'], ['a.example'], false],
    ['blockedRecipientDomains', ['a.example'], ['x.a.example'], true],
    ['dailySendCapPerInbox', 10, null, true],
    ['requireSendApproval', 'all', 'external', true],
    ['requireSendApproval', 'external', 'off', true],
    ['requireSendApproval', 'external', 'all', false],
    ['afterAlarm', 'approval', 'none', true],
    ['afterAlarm', 'none', 'approval', false],
    ['autoSubmittedHeader', true, false, true],
    ['supportAccess', 'ask', 'allowed', true],
    ['supportAccess', 'allowed', 'ask', false],
    ['supportAccessUntil', null, new Date(1), true],
    ['supportAccessUntil', new Date(1), null, false],
  ])('%s from %j to %j: %s', (name, before, after, isWeaker) => {
    const found = findWeakenedPolicies(
      { ...DEFAULT_POLICIES, [name]: before },
      { ...DEFAULT_POLICIES, [name]: after },
    );
    expect(found.length > 0).toBe(isWeaker);
  });
});
