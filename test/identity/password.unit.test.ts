import { createHook } from 'node:async_hooks';
import { argon2Sync } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { createPasswordHashing } from '../../domain/identity/password.ts';

const hashing = createPasswordHashing();

test('the PHC string contains everything needed to verify the password', async () => {
  const [, algorithm, version, parameters, nonce, tag] = (await hashing.hash('correct horse', null)).split(
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
  expect(await hashing.hash('same', null)).not.toBe(await hashing.hash('same', null));
});

/** How many times Argon2 runs. Time itself would depend on the load of the machine. */
async function countComputations(work: () => Promise<unknown>): Promise<number> {
  let computations = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === 'ARGON2REQUEST') computations += 1;
    },
  }).enable();
  try {
    await work();
  } finally {
    hook.disable();
  }
  return computations;
}

describe('a password', () => {
  const ip = '192.0.2.1';

  test('matches its hash, in each spelling of the same characters', async () => {
    const phc = await hashing.hash('Zo\u00eb likes \u2460 horse', ip);
    expect(await hashing.verify(phc, 'Zoe\u0308 likes 1 horse', ip)).toBe(true);
    expect(await hashing.verify(phc, 'Zoe likes 1 horse', ip)).toBe(false);
  });

  test('matches a hash with earlier parameters', async () => {
    const nonce = Buffer.alloc(8, 7);
    const tag = argon2Sync('argon2id', {
      message: 'correct horse',
      nonce,
      parallelism: 1,
      tagLength: 16,
      memory: 1_024,
      passes: 2,
    });
    const text = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '');
    const phc = `$argon2id$v=19$m=1024,t=2,p=1$${text(nonce)}$${text(tag)}`;
    expect(await hashing.verify(phc, 'correct horse', ip)).toBe(true);
    expect(await hashing.verify(phc, 'another horse', ip)).toBe(false);
    for (const broken of [`x${phc}`, `${phc}=`, phc.replace('argon2id', 'argon2i'), phc.replace('t=2', 't=')])
      expect(await hashing.verify(broken, 'correct horse', ip)).toBe(false);
  });

  test('costs one computation to check, also where there is no account', async () => {
    const phc = await hashing.hash('another horse', ip);
    for (const stored of [phc, null, 'no hash'])
      expect(
        await countComputations(async () =>
          expect(await hashing.verify(stored, 'correct horse', ip)).toBe(false),
        ),
      ).toBe(1);
  });
});
