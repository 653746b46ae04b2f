import { expect, test } from '@jest/globals';
import { invalidCredentials } from '../../domain/identity/sign-in-errors.ts';
import { createSignInThrottle } from '../../domain/people/sign-in-throttle.ts';
import { sha256 } from '../../platform/crypto.ts';
import { createDatabase } from '../../platform/database/database.ts';
import { networkOf } from '../../platform/network.ts';
import { testStack } from '../support/stack.ts';

const guess = () => Promise.reject(invalidCredentials());

test('guesses from one network, which wait for its lock, leave connections to other networks', async () => {
  const database = createDatabase({ url: testStack().postgres.apiUrl, poolSize: 4 });
  const throttle = createSignInThrottle({ database });
  const run = (ip: string, name: string) => throttle.run({ account: `${name}@people.example`, ip }, guess);
  await expect(run('2001:db8:7:1::1', 'first')).rejects.toMatchObject({ code: 'invalid_credentials' });
  const { promise: unlocked, resolve: unlock } = Promise.withResolvers<void>();
  const { promise: locked, resolve: lock } = Promise.withResolvers<void>();
  const locking = database.peopleTransaction(async ({ db }) => {
    const counter = sha256(`network:${networkOf('2001:db8:7:1::1')}`);
    await db
      .selectFrom('sign_in_attempts')
      .select('failures')
      .where('key_hash', '=', counter)
      .forUpdate()
      .executeTakeFirstOrThrow();
    lock();
    await unlocked;
  });
  await locked;
  const flood = Array.from({ length: 40 }, (_, index) =>
    run('2001:db8:7:1::2', `person-${index}`).catch(({ code }) => code),
  );
  await expect(run('2001:db8:7:2::1', 'other')).rejects.toMatchObject({ code: 'invalid_credentials' });
  unlock();
  await Promise.all([locking, ...flood]);
  await database.close();
});
