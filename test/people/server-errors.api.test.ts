import { expect, test } from '@jest/globals';
import { invalidCredentials } from '../../domain/identity/sign-in-errors.ts';
import { createSignInThrottle } from '../../domain/people/sign-in-throttle.ts';
import { AppError } from '../../platform/errors.ts';
import { newAddress } from '../support/accounts.ts';
import { createOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { startTestApp } from '../support/test-app.ts';

const app = useTestApp();

test('with the database down every request gets 503, and none counts for its address', async () => {
  const { token, ownerId } = await createOrganization(app.worker);
  const session = await createTestSession(app.worker, ownerId);
  // Nothing listens there.
  const broken = await startTestApp({ databaseUrl: 'postgresql://agent_email_api:x@127.0.0.1:1/none' });
  const paths = [
    ['/inboxes', token],
    ['/user/me', session.token],
    ['/admin/me', session.token],
  ] as const;
  for (const [path, credential] of paths) {
    const requests = Array.from({ length: 200 }, () => broken.call(path, { token: credential }));
    const statuses = (await Promise.all(requests)).map(({ statusCode }) => statusCode);
    expect([path, ...new Set(statuses)]).toEqual([path, 503]);
  }
  await broken.close();
});

test('an attempt that ends with an error of the service is no failure', async () => {
  const throttle = createSignInThrottle({ database: app.database });
  const client = { account: newAddress(), ip: '2001:db8:9:9::1' };
  const failWith = (error: Error) =>
    throttle.run(client, () => Promise.reject(error)).catch(({ code }) => code);
  const unavailable = new AppError('unavailable', { detail: 'Down.', fix: 'Repeat.' });
  for (let attempt = 0; attempt < 60; attempt += 1) expect(await failWith(unavailable)).toBe('unavailable');
  const codes: unknown[] = [];
  for (let attempt = 0; attempt < 7; attempt += 1) codes.push(await failWith(invalidCredentials()));
  expect(codes.slice(0, 5)).toEqual(Array(5).fill('invalid_credentials'));
  expect(codes).toContain('rate_limited');
});

test('what is taken back ends no delay of another failure', async () => {
  const throttle = createSignInThrottle({ database: app.database });
  const client = { account: newAddress(), ip: null };
  const guess = () =>
    throttle.run(client, () => Promise.reject(invalidCredentials())).catch(({ code }) => code);
  for (let attempt = 0; attempt < 4; attempt += 1) await guess();
  const unavailable = new AppError('unavailable', { detail: 'Down.', fix: 'Repeat.' });
  await throttle
    .run(client, async () => {
      // The sixth counts while this one, the fifth, runs.
      expect(await guess()).toBe('invalid_credentials');
      throw unavailable;
    })
    .catch(() => undefined);
  expect(await guess()).toBe('rate_limited');
});
