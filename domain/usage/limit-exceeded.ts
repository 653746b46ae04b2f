import { AppError } from '../../platform/errors.ts';
import { LEVEL_COUNTER, type Limited, type UsageCounter } from './counters.ts';
import type { EffectiveLimit } from './effective-limit.ts';
import { monthOf } from './periods.ts';

/** Without `Retry-After`: weeks would put clients to sleep. `resets_at` says when waiting would help, if it would. */
export function usageLimitExceeded(
  counter: UsageCounter,
  { limit: shown, refusedAbove: limit, source }: EffectiveLimit,
  now: Date,
): AppError {
  const isOwn = source === 'own' || limit !== shown;
  const isLevel = counter === LEVEL_COUNTER;
  return new AppError('usage_limit_exceeded', {
    detail: isLevel
      ? `The organization may store ${limit} bytes of attachments, and this would go beyond.`
      : `The organization has used up its ${counter} of this month: ${limit}.`,
    fix: `${isOwn ? 'Raise or remove the organization’s own cap (PUT /api/v1/org/limits)' : 'Ask an owner to upgrade or support to raise the limit'}, or ${
      isLevel ? 'delete messages or drafts with files.' : 'wait until resets_at.'
    }`,
    extensions: { counter, ...(isLevel ? {} : { resets_at: monthOf(now).end.toISOString() }) },
  });
}

/** For inboxes and domains: there may be so many at once. */
export function planLimitReached(limited: Limited, { refusedAbove: limit }: EffectiveLimit): AppError {
  return new AppError('plan_limit_reached', {
    detail: `The organization may have ${limit} ${limited}, and has as many.`,
    fix: `Delete one of the ${limited}, or ask an owner to upgrade.`,
    extensions: { counter: limited },
  });
}

export function isUsageLimitExceeded(error: unknown): error is AppError {
  return error instanceof AppError && error.code === 'usage_limit_exceeded';
}
