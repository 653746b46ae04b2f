import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createSigner } from '../../platform/crypto.ts';
import { idFromBytes, idToBytes, newId } from '../../platform/ids.ts';
import { createReturnPaths } from '../../platform/return-path.ts';

const signingKey = Buffer.alloc(32, 7).toString('base64');
const domain = 'Bounces.Agents.Test';
const returnPaths = createReturnPaths({ signingKey, domain });

const messageIds = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((bytes) => idFromBytes('message', Buffer.from(bytes)));
const positions = fc.nat({ max: 65_535 });

describe('return paths', () => {
  test('decode to their values in upper and lower case', () => {
    fc.assert(
      fc.property(messageIds, positions, fc.boolean(), (messageId, position, upper) => {
        const address = returnPaths.create(messageId, position);
        expect(returnPaths.parse(upper ? address.toUpperCase() : address)).toEqual({ messageId, position });
      }),
    );
  });

  test('are lower case, within the limits of RFC 5321 and need no quoting', () => {
    fc.assert(
      fc.property(messageIds, positions, (messageId, position) => {
        const [localPart = '', host] = returnPaths.create(messageId, position).split('@');
        expect(localPart).toMatch(/^bounces\+[a-z2-7]{45}$/);
        expect(localPart.length).toBeLessThanOrEqual(64);
        expect(host).toBe('bounces.agents.test');
      }),
    );
  });

  test('differ for each recipient of each message', () => {
    const [first, second] = [newId('message'), newId('message')];
    const addresses = [first, second].flatMap((id) => [0, 1, 256].map((at) => returnPaths.create(id, at)));
    expect(new Set(addresses).size).toBe(6);
  });

  test('are rejected with one character changed', () => {
    const address = returnPaths.create(newId('message'), 3);
    for (let at = 'bounces+'.length; at < address.indexOf('@'); at += 1) {
      const other = address[at] === 'a' ? 'b' : 'a';
      expect(returnPaths.parse(address.slice(0, at) + other + address.slice(at + 1))).toBeNull();
    }
  });

  test('are rejected with another key', () => {
    const others = createReturnPaths({ signingKey: Buffer.alloc(32, 8).toString('base64'), domain });
    expect(returnPaths.parse(others.create(newId('message'), 0))).toBeNull();
  });

  test('are distinguished from other addresses', () => {
    const address = returnPaths.create(newId('message'), 0);
    const token = address.slice(8, 53);
    for (const other of [
      '',
      'bounces+@bounces.agents.test',
      'bounces@bounces.agents.test',
      `bounces+${token}@agents.test`,
      `bounces+${token}@x.bounces.agents.test`,
      `bounces+${token}a@bounces.agents.test`,
      `bounces+${token.slice(0, -1)}@bounces.agents.test`,
      `bounces+${token}=@bounces.agents.test`,
      ` ${address}`,
    ]) {
      expect(returnPaths.parse(other)).toBeNull();
    }
    fc.assert(fc.property(fc.string(), (text) => returnPaths.parse(`bounces+${text}@${domain}`) === null));
  });

  test('have one spelling: the bit that the last character has left is zero', () => {
    const address = returnPaths.create(newId('message'), 7);
    const at = address.indexOf('@') - 1;
    const spellings = [...'abcdefghijklmnopqrstuvwxyz234567'].filter(
      (last) => returnPaths.parse(address.slice(0, at) + last + address.slice(at + 1)) !== null,
    );
    expect(spellings).toEqual([address[at]]);
  });

  test('need a signature that was made for return paths', () => {
    const target = Buffer.concat([idToBytes(newId('message')), Buffer.from([0, 1])]);
    const parse = (purpose: string) => {
      const bytes = Buffer.concat([target, createSigner(signingKey, purpose, 10).sign(target)]);
      return returnPaths.parse(`bounces+${base32(bytes)}@bounces.agents.test`);
    };
    expect(parse('return-path')).toMatchObject({ position: 1 });
    expect(parse('cursor')).toBeNull();
  });
});

/** RFC 4648 section 6, in lower case and without padding. */
function base32(bytes: Buffer): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => 'abcdefghijklmnopqrstuvwxyz234567'.charAt(Number.parseInt(five.padEnd(5, '0'), 2)))
    .join('');
}

describe('a text', () => {
  const [message, other] = [newId('message'), newId('message')];
  const own = returnPaths.create(message, 1);
  const forged = `bounces+${'a'.repeat(45)}@bounces.agents.test`;

  test.each([
    [
      'names a return path among other words',
      `Reporting <${own}>: user unknown`,
      { messageId: message, position: 1 },
    ],
    ['names it in upper case', own.toUpperCase(), { messageId: message, position: 1 }],
    [
      'names several: the first counts',
      `${own} ${returnPaths.create(other, 2)}`,
      { messageId: message, position: 1 },
    ],
    ['names a forged one before a valid one', `${forged} ${own}`, { messageId: message, position: 1 }],
    ['names only a forged one', forged, null],
    ['names none', 'bounces+abc@bounces.agents.test', null],
    [
      'names one within the first 10,000 characters',
      `${' '.repeat(9_900)}${own}`,
      { messageId: message, position: 1 },
    ],
    ['names one only after 10,000 characters', `${' '.repeat(10_000)}${own}`, null],
  ])('%s', (_name, text, expected) => {
    expect(returnPaths.findIn(text)).toEqual(expected);
  });
});
