import { describe, expect, test } from '@jest/globals';
import { generate } from 'otplib';
import { createTotpSetup, findTotpStep } from '../../domain/people/totp.ts';

const setup = createTotpSetup({ issuer: 'Agent Email', label: 'ada@example.com' });
const STEP_SECONDS = 30;
const now = () => Math.floor(Date.now() / 1_000);
const codeOf = (stepsAway: number) =>
  generate({ secret: setup.secret, epoch: now() + stepsAway * STEP_SECONDS });

describe('an authenticator app', () => {
  test('is set up with 160 bits, as text, link and image', () => {
    expect(setup.secret).toMatch(/^[A-Z2-7]{32}$/);
    const uri = new URL(setup.uri);
    expect([uri.protocol, uri.host]).toEqual(['otpauth:', 'totp']);
    expect(decodeURIComponent(uri.pathname)).toBe('/Agent Email:ada@example.com');
    expect(uri.searchParams.get('secret')).toBe(setup.secret);
    expect(uri.searchParams.get('issuer')).toBe('Agent Email');
    expect(setup.qrSvg).toMatch(/^<svg[\s\S]+<\/svg>$/);
    expect(createTotpSetup({ issuer: 'a', label: 'b' }).secret).not.toBe(setup.secret);
  });
});

describe('a code', () => {
  test('of this step and of its neighbors is right', async () => {
    for (const away of [-1, 0, 1])
      expect(await findTotpStep(setup.secret, await codeOf(away), null)).toEqual(expect.any(Number));
    for (const away of [-3, 3]) expect(await findTotpStep(setup.secret, await codeOf(away), null)).toBeNull();
  });

  test('may be typed with spaces', async () => {
    const code = await codeOf(0);
    expect(await findTotpStep(setup.secret, ` ${code.slice(0, 3)} ${code.slice(3)} `, null)).not.toBeNull();
  });

  test('works once, and no earlier one after it', async () => {
    const [code, earlier] = [await codeOf(0), await codeOf(-1)];
    const step = await findTotpStep(setup.secret, code, null);
    expect(await findTotpStep(setup.secret, code, step)).toBeNull();
    expect(await findTotpStep(setup.secret, earlier, step)).toBeNull();
    expect(await findTotpStep(setup.secret, code, (step ?? 0) - 1)).toBe(step);
  });

  test.each(['', '12345', '1234567', 'abcdef', '12345a', '-12345'])('is not %j', async (code) => {
    expect(await findTotpStep(setup.secret, code, null)).toBeNull();
  });

  test('of another secret is wrong', async () => {
    const other = createTotpSetup({ issuer: 'a', label: 'b' });
    expect(await findTotpStep(other.secret, await codeOf(0), null)).toBeNull();
  });
});
