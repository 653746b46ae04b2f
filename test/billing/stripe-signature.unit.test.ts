import { expect, test } from '@jest/globals';
import { signEvent } from '../../dev/stripe-stand-in/stand-in.ts';
import { isPlausibleSignature } from '../../domain/billing/stripe-signature.ts';

const NOW = Date.UTC(2026, 10, 22);
const at = (seconds: number) => Math.floor(NOW / 1_000) + seconds;
const hash = 'a'.repeat(64);
/** A valid signature of few parts, of which one is long. */
const padTo = (characters: number) => `t=${at(0)},v1=${hash},v0=`.padEnd(characters, 'a');

test.each([
  ['of the SDK', signEvent('{}', 'whsec_test', at(0))],
  ['of a rotation, with another scheme', `t=${at(0)},v1=${hash},v1=${hash},v0=${hash}`],
  ['five minutes old', `t=${at(-300)},v1=${hash}`],
  ['ahead of our clock', `t=${at(3_600)},v1=${hash}`],
  ['of 2,000 characters', padTo(2_000)],
  ['of 16 parts', `t=${at(0)},v1=${hash}${',a=b'.repeat(14)}`],
])('takes a signature %s', (_name, header) => {
  expect(isPlausibleSignature(header, NOW)).toBe(true);
});

test.each([
  ['that is missing', undefined],
  ['that is empty', ''],
  ['without a time', `v1=${hash}`],
  ['whose time is no number', `t=now,v1=${hash}`],
  ['whose time stands in another part', `xt=${at(0)},v1=${hash}`],
  ['whose time has something behind it', `t=${at(0)}x,v1=${hash}`],
  ['that is too old', `t=${at(-301)},v1=${hash}`],
  ['without v1', `t=${at(0)},v0=${hash}`],
  ['whose hash stands in another part', `t=${at(0)},xv1=${hash}`],
  ['whose hash is too long', `t=${at(0)},v1=${hash}a`],
  ['that is no hash', `t=${at(0)},v1=abc`],
  ['with hundreds of hashes', `t=${at(0)}${`,v1=${hash}`.repeat(300)}`],
  ['of 17 parts', `t=${at(0)},v1=${hash}${',a=b'.repeat(15)}`],
  ['of 2,001 characters', padTo(2_001)],
])('refuses a signature %s', (_name, header) => {
  expect(isPlausibleSignature(header, NOW)).toBe(false);
});
