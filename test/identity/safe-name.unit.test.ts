import { describe, expect, test } from '@jest/globals';
import { isSafeName, requireSafeName } from '../../domain/identity/safe-name.ts';

describe('a name that others read in emails', () => {
  test.each([
    ['Ada Lovelace', 'Ada Lovelace'],
    ['  Ada \t\n  Lovelace ', 'Ada Lovelace'],
    ['Zoe\u0308', 'Zo\u00eb'],
    ['J. R. R. Tolkien', 'J. R. R. Tolkien'],
    ['Acme (EU) & Co.', 'Acme (EU) & Co.'],
    ['x'.repeat(50), 'x'.repeat(50)],
    ['\u{1f984}'.repeat(50), '\u{1f984}'.repeat(50)],
  ])('may be %j', (name, stored) => {
    expect(requireSafeName(name, '/body/name')).toBe(stored);
    expect(isSafeName(stored)).toBe(true);
  });

  test.each([
    ['is empty', ''],
    ['is only white space', ' \n '],
    ['has 51 characters', 'x'.repeat(51)],
    ['has a control character', 'Ada\u0007'],
    ['changes the direction of text', 'Ada\u202e'],
    ['has a lone surrogate', 'Ada\ud800'],
    ['has a private character', 'Ada\ue000'],
    ['has an address', 'ada@example'],
    ['has a link', 'https://x'],
    ['has a path', 'win/now'],
    ['begins like a web address', 'WWW.x'],
    ['has a host name', 'Claim at Example.com now'],
    ['is a host name', 'prize.io'],
  ])('is refused if it %s', (_name, name) => {
    expect(() => requireSafeName(name, '/body/name')).toThrow(
      expect.objectContaining({
        code: 'validation_error',
        errors: [{ path: '/body/name', message: expect.stringContaining('must not') }],
      }),
    );
    expect(isSafeName(name.trim())).toBe(false);
  });
});
