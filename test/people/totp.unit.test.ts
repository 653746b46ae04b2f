import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { generate } from 'otplib';
import { createTotpSetup, findTotpStep } from '../../domain/people/totp.ts';

const NOW = Date.parse('2026-11-23T12:00:05Z');
/** The clock stands still: a code must not change between its creation and its check. */
beforeEach(() => void jest.spyOn(Date, 'now').mockReturnValue(NOW));
afterEach(() => void jest.restoreAllMocks());

const setup = createTotpSetup({ issuer: 'Agent Email', label: 'ada@example.com' });
const STEP_SECONDS = 30;
const codeOf = (stepsAway: number) =>
  generate({ secret: setup.secret, epoch: NOW / 1_000 + stepsAway * STEP_SECONDS });

describe('an authenticator app', () => {
  test('is set up with 160 bits, as text, link and image', () => {
    expect(setup.secret).toMatch(/^[A-Z2-7]{32}$/);
    const uri = new URL(setup.uri);
    expect([uri.protocol, uri.host]).toEqual(['otpauth:', 'totp']);
    expect(decodeURIComponent(uri.pathname)).toBe('/Agent Email:ada@example.com');
    expect(uri.searchParams.get('secret')).toBe(setup.secret);
    expect(uri.searchParams.get('issuer')).toBe('Agent Email');
    expect(setup.qrSvg).toMatch(/^<svg.+<\/svg>$/s);
    expect(createTotpSetup({ issuer: 'a', label: 'b' }).secret).not.toBe(setup.secret);
  });
});

describe('a code', () => {
  test('is that of RFC 6238, appendix B', async () => {
    const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';
    jest.mocked(Date.now).mockReturnValue(1_111_111_109_000);
    expect(await findTotpStep(secret, '081804', null)).toBe(0x23523ec);
  });

  test('of this step and of its neighbors is right, and names its step', async () => {
    const step = Math.floor(NOW / 1_000 / STEP_SECONDS);
    for (const away of [-1, 0, 1])
      expect(await findTotpStep(setup.secret, await codeOf(away), null)).toBe(step + away);
    for (const away of [-2, 2]) expect(await findTotpStep(setup.secret, await codeOf(away), null)).toBeNull();
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
