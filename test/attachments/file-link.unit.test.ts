import { expect, test } from '@jest/globals';
import { createFileLink } from '../../domain/attachments/attachment.service.ts';
import type { ImpersonationScope } from '../../domain/identity/scope.ts';
import { TIME_FACTOR } from '../support/time-factor.ts';

const file = { storageKey: 'attachments/1', filename: 'a.txt', contentType: 'text/plain' };

/** How long the link works, as storage is asked and as the caller is informed. */
async function lifetimeFor(sessionSeconds?: number): Promise<number> {
  const asked: number[] = [];
  const storage = {
    presignGet: async (_key: string, { expiresInSeconds }: { expiresInSeconds: number }) => {
      asked.push(expiresInSeconds);
      return 'https://storage.example/a';
    },
  };
  const expiresAt = new Date(Date.now() + (sessionSeconds ?? 0) * 1_000);
  const impersonation: ImpersonationScope = {
    id: 'imp_1',
    staffSessionId: 'ses_1',
    allowsWrite: false,
    expiresAt,
  };
  const link = await createFileLink(storage, sessionSeconds === undefined ? {} : { impersonation }, file);
  const [seconds = Number.NaN] = asked;
  expect(Math.abs(link.expiresAt.getTime() - Date.now() - seconds * 1_000)).toBeLessThan(1_000 * TIME_FACTOR);
  return seconds;
}

test('a download link works for 15 minutes', async () => {
  expect(await lifetimeFor()).toBe(900);
});

test('a support session leaves none behind: it expires within ten seconds, and with the session', async () => {
  expect(await lifetimeFor(3_600)).toBe(10);
  expect(await lifetimeFor(5)).toBeLessThanOrEqual(5);
  expect(await lifetimeFor(0.2)).toBe(1);
});
