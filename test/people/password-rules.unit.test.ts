import { describe, expect, test } from '@jest/globals';
import { requireStrongPassword } from '../../domain/people/password-rules.ts';

const PERSONAL = ['ada.lovelace@example.com', 'Ada Lovelace'];
const problemOf = (password: string): string | undefined => {
  try {
    requireStrongPassword(password, '/body/password', PERSONAL);
    return undefined;
  } catch (error) {
    expect(error).toMatchObject({ code: 'validation_error', errors: [{ path: '/body/password' }] });
    return (error as Error).message;
  }
};

describe('a password is taken', () => {
  test.each([
    ['of unrelated words', 'plinth gravel umber'],
    ['of random characters', 'kV9!tq2#Wz7@'],
    ['with a common word among much else', 'password plinth gravel'],
    ['of six characters that nothing predicts, beside digits', 'plnthg-84921'],
    ['of few different letters, if it has twelve of them', 'nabtunbatnubant'],
    ['of another alphabet', 'пшеница-корабль'],
    ['with a name of two letters, which may be part of any word', 'adz plinth gr'],
  ])('%s: %s', (_name, password) => expect(problemOf(password)).toBeUndefined());
});

describe('a password is refused', () => {
  test.each([
    ['with eleven characters', 'plinth-grav'],
    ['with eleven characters beyond the basic plane', '\u{1f984}'.repeat(11)],
  ])('%s', (_name, password) => expect(problemOf(password)).toContain('at least 12'));

  test.each([
    ['of a common word and digits', 'password12345'],
    ['of common words, in any case', 'CorrectHorseBatteryStaple'],
    ['of common words between punctuation', '!!welcome--admin!!'],
    ['of digits', '839201748263'],
    ['of a common role and digits', 'administrator1'],
    ['of what people love and digits', 'princess-2024!'],
    ['of a title and digits', 'starwars-1977'],
    ['of a month and digits', 'february-2026'],
    ['of a club and digits', 'liverpool1892'],
    ['of a keyboard row', 'qwertyuiop[]'],
    ['of a middle keyboard row, in pieces', 'gfdsa12hjk34'],
    ['of a keyboard row from right to left', 'poiuytrewq98'],
    ['of a walk over the keyboard', '1qaz2wsx3edc4rfv'],
    ['of the alphabet', 'abcdefghijklm'],
    ['of one repeated character', 'zzzzzzzzzzzzzz'],
    ['of a repeated word', 'plumplumplum'],
    ['of the name of the person', 'lovelace-lovelace1'],
    ['of the address of the person', 'Ada.Lovelace.2026'],
    ['of the domain of the person', 'examplecom12'],
    ['of five characters that nothing predicts, beside digits', 'plntg-849217'],
  ])('%s: %s', (_name, password) => expect(problemOf(password)).toContain('attackers try first'));

  test('does not depend on the person, if none is given', () => {
    expect(() => requireStrongPassword('lovelace-zubin', '/password')).not.toThrow();
  });
});
