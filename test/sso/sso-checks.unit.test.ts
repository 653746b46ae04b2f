import { describe, expect, test } from '@jest/globals';
import {
  createSsoChecks,
  redactAddress,
  SSO_CHECKS,
  SsoRefusal,
  ssoFailed,
  ssoNotStarted,
  ssoTestFailed,
  UnknownKey,
} from '../../domain/sso/sso-checks.ts';

describe('the checks of a login', () => {
  test('list what passed and what refused it', () => {
    const checks = createSsoChecks();
    checks.pass('issuer', 'https://idp.test', 'https://idp.test');
    checks.require('nonce', true);
    expect(() => checks.require('audience', false, ['a', 'b'], 'c')).toThrow(new SsoRefusal('audience'));
    expect(() => checks.fail('time', 7, new Date(0))).toThrow(new SsoRefusal('time'));
    expect(checks.all).toEqual([
      { name: 'issuer', passed: true, seen: 'https://idp.test', expected: 'https://idp.test' },
      { name: 'nonce', passed: true, seen: null, expected: null },
      { name: 'audience', passed: false, seen: '["a","b"]', expected: 'c' },
      { name: 'time', passed: false, seen: '7', expected: '"1970-01-01T00:00:00.000Z"' },
    ]);
  });

  test('tell an unknown key, after which keys are read again, from a wrong signature', () => {
    const checks = createSsoChecks();
    expect(() => checks.failKey('key 1', 'another key')).toThrow(UnknownKey);
    expect(() => checks.fail('signature')).not.toThrow(UnknownKey);
    expect(checks.all[0]).toEqual({
      name: 'signature',
      passed: false,
      seen: 'key 1',
      expected: 'another key',
    });
  });

  test('are forgotten from where the answer is read once more', () => {
    const checks = createSsoChecks();
    for (const name of ['provider', 'response', 'issuer'] as const) checks.pass(name);
    checks.restart(1);
    expect(checks.all.map(({ name }) => name)).toEqual(['provider']);
  });

  test('are at most forty, with values of 300 characters that can be stored', () => {
    const checks = createSsoChecks();
    for (let index = 0; index < 41; index += 1) checks.pass('response', `\0${'x'.repeat(400)}`);
    expect(checks.all).toHaveLength(40);
    expect(checks.all[0]?.seen).toBe(`\ufffd${'x'.repeat(299)}`);
  });

  test('show what no JSON can hold', () => {
    const checks = createSsoChecks();
    checks.pass('response', Symbol.for('x'));
    expect(checks.all[0]?.seen).toBe('Symbol(x)');
  });
});

test.each([
  ['ada@example.com', 'a…@example.com'],
  ['"a@b"@example.com', '"…@example.com'],
  ['@example.com', '@…'],
  ['ada', 'a…'],
  ['', '…'],
  [undefined, null],
  [null, null],
  [['ada@example.com'], 'object'],
  [7, 'number'],
])('the address %j is shown as %j', (email, shown) => expect(redactAddress(email)).toBe(shown));

describe('the error', () => {
  test('of a refused login names the check', () => {
    expect(ssoFailed('audience')).toMatchObject({
      code: 'sso_failed',
      detail: SSO_CHECKS.audience,
      extensions: { check: 'audience' },
      fix: expect.stringContaining('GET /api/v1/org/sso/{id}/attempts'),
    });
  });

  test('of a login that began elsewhere is the same for every cause', () => {
    expect(ssoNotStarted()).toMatchObject({ code: 'sso_failed', extensions: {} });
  });

  test('of a test shows the values of the last check of that name', () => {
    const check = (seen: string | null, expected: string | null) =>
      ({ name: 'provider', passed: false, seen, expected }) as const;
    const later = { name: 'response', passed: false, seen: 'other', expected: null } as const;
    const error = ssoTestFailed('provider', [check('first', null), check('HTTP 404', 'metadata'), later]);
    expect(error).toMatchObject({
      code: 'unprocessable',
      detail: `${SSO_CHECKS.provider} Seen: HTTP 404`,
      extensions: { check: 'provider', seen: 'HTTP 404', expected: 'metadata' },
    });
    for (const checks of [[], [check(null, null)]])
      expect(ssoTestFailed('provider', checks)).toMatchObject({
        detail: SSO_CHECKS.provider,
        extensions: { check: 'provider' },
      });
    expect(ssoTestFailed('provider', []).extensions).toEqual({ check: 'provider' });
  });
});
