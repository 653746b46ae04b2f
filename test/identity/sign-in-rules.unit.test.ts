import { describe, expect, test } from '@jest/globals';
import { addressNotAllowed } from '../../domain/identity/allowed-addresses.ts';
import {
  findSuspension,
  organizationDeleted,
  sessionRequired,
  unauthenticated,
} from '../../domain/identity/authentication.ts';
import { FRESH_LOGIN_MS, requireFreshLogin, requireRecentSignIn } from '../../domain/identity/person.ts';
import {
  accountDeleted,
  invalidCredentials,
  wrongCredentials,
} from '../../domain/identity/sign-in-errors.ts';

const ago = (ms: number) => new Date(Date.now() - ms);
const BEARER = { 'www-authenticate': 'Bearer' };
const expired = expect.objectContaining({ code: 'session_expired', headers: BEARER });

describe('a change of the account', () => {
  test('needs a sign-in within the last ten minutes', () => {
    const person = (ms: number) => ({ authenticatedAt: ago(ms), managesAccount: true });
    expect(() => requireFreshLogin(person(0))).not.toThrow();
    expect(() => requireFreshLogin(person(FRESH_LOGIN_MS - 5_000))).not.toThrow();
    expect(() => requireFreshLogin(person(FRESH_LOGIN_MS + 1))).toThrow(expired);
    expect(FRESH_LOGIN_MS).toBe(600_000);
  });

  test('is refused to the single sign-on of one organization, however recent', () => {
    const error = expect.objectContaining({
      code: 'session_expired',
      headers: BEARER,
      fix: expect.stringContaining('password, passkey or provider'),
    });
    expect(() => requireFreshLogin({ authenticatedAt: new Date(), managesAccount: false })).toThrow(error);
  });
});

test('a change of the organization that owners confirm needs a recent sign-in of any kind', () => {
  expect(() => requireRecentSignIn({ authenticatedAt: ago(1_000) })).not.toThrow();
  expect(() => requireRecentSignIn({ authenticatedAt: ago(FRESH_LOGIN_MS + 1) })).toThrow(expired);
});

describe('a suspension', () => {
  const active = {
    organizationStatus: 'active',
    environmentStatus: 'active',
    inboxStatus: 'active',
  } as const;
  test.each([
    ['of nothing', active, undefined],
    [
      'of nothing, with a credential bound to nothing',
      { organizationStatus: 'active', environmentStatus: null } as const,
      undefined,
    ],
    [
      'of the organization',
      { ...active, organizationStatus: 'suspended' } as const,
      'organization_suspended',
    ],
    ['of the environment', { ...active, environmentStatus: 'suspended' } as const, 'environment_suspended'],
    ['of the inbox', { ...active, inboxStatus: 'suspended' } as const, 'inbox_suspended'],
    [
      'of all three, of which the widest is named',
      { organizationStatus: 'suspended', environmentStatus: 'suspended', inboxStatus: 'suspended' } as const,
      'organization_suspended',
    ],
  ])('%s', (_name, status, code) => {
    expect(findSuspension(status)?.code).toBe(code);
  });
});

describe('a credential', () => {
  test('that is wrong gets one answer, whatever was wrong', () => {
    expect(invalidCredentials()).toMatchObject({ code: 'invalid_credentials', commitsTransaction: false });
    expect(wrongCredentials()).toMatchObject({
      code: 'invalid_credentials',
      detail: invalidCredentials().detail,
      fix: invalidCredentials().fix,
      commitsTransaction: true,
    });
  });

  test.each([
    ['unknown', unauthenticated()],
    ['of another kind', sessionRequired()],
  ])('that is %s is answered with the scheme that the API takes', (_name, error) => {
    expect(error).toMatchObject({ code: 'unauthenticated', headers: BEARER });
    expect(error.fix).toContain('Authorization: Bearer');
  });

  test('of a closed organization is told how to recover it', () => {
    expect(organizationDeleted('org_1')).toMatchObject({
      code: 'organization_deleted',
      fix: expect.stringContaining('POST /api/v1/user/me/organizations/org_1/recover'),
    });
  });

  test.each(['key', 'organization'] as const)('from an address that the %s does not allow', (owner) => {
    expect(addressNotAllowed(owner)).toMatchObject({
      code: 'policy_violation',
      extensions: { policy: 'allowed_cidrs' },
      detail: expect.stringContaining(owner),
    });
  });
});

describe('a deleted account', () => {
  const deletedAt = new Date('2026-11-01T00:00:00Z');
  const answer = (now: string) => accountDeleted(deletedAt, new Date(now));

  test('can be recovered for thirty days', () => {
    expect(answer('2026-11-30T23:59:59Z')).toMatchObject({
      code: 'account_deleted',
      extensions: { recoverable_until: '2026-12-01T00:00:00.000Z' },
      fix: expect.stringContaining('POST /api/v1/user/me/recover'),
    });
  });

  test('does not exist any more after them', () => {
    expect(answer('2026-12-01T00:00:00Z')).toMatchObject({ code: 'invalid_credentials', extensions: {} });
  });
});
