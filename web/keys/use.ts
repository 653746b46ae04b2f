import type { Tone } from '../shell/charts.ts';

const DAY_MS = 86_400_000;
const UNUSED_DAYS = 30;
const SOON_DAYS = 14;

/** Credentials that were last used before then stand out. */
export const unusedSince = (now = Date.now()): Date => new Date(now - UNUSED_DAYS * DAY_MS);

interface Credential {
  createdAt: Date;
  expiresAt: Date | null;
  lastUsedAt: Date | null;
  /** Of the token before a rotation. */
  previousLastUsedAt?: Date | null;
}

/** Whether a key or connection was neither used nor created within a month. */
export function isUnused({ createdAt, lastUsedAt, previousLastUsedAt }: Credential): boolean {
  const latest = Math.max(...[createdAt, lastUsedAt, previousLastUsedAt].map((date) => date?.getTime() ?? 0));
  return latest < unusedSince().getTime();
}

/** What a person must know about a key or connection at a glance. */
export function badgesOf(credential: Credential): [tone: Tone, text: string][] {
  const { expiresAt } = credential;
  const left = expiresAt ? expiresAt.getTime() - Date.now() : Number.POSITIVE_INFINITY;
  return [
    ...(left <= 0 ? [['bad', 'expired'] as const] : []),
    ...(left > 0 && left < SOON_DAYS * DAY_MS ? [['warn', 'expires soon'] as const] : []),
    ...(isUnused(credential) ? [['warn', 'unused for a month'] as const] : []),
  ].map(([tone, text]) => [tone, text]);
}
