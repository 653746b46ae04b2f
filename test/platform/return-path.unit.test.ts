import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { idFromBytes, newId } from '../../platform/ids.ts';
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
});
