import { argon2Sync } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { hashPassword } from '../../domain/identity/password.ts';

test('the PHC string contains everything needed to verify the password', async () => {
  const [, algorithm, version, parameters, nonce, tag] = (await hashPassword('correct horse', null)).split(
    '$',
  );
  expect([algorithm, version, parameters]).toEqual(['argon2id', 'v=19', 'm=65536,t=3,p=1']);
  const again = argon2Sync('argon2id', {
    message: 'correct horse',
    nonce: Buffer.from(nonce ?? '', 'base64'),
    parallelism: 1,
    tagLength: 32,
    memory: 65_536,
    passes: 3,
  });
  expect(again.toString('base64').replace(/=+$/, '')).toBe(tag);
});

test('the same password has a different hash each time', async () => {
  expect(await hashPassword('same', null)).not.toBe(await hashPassword('same', null));
});
