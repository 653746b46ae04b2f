import { AppError } from '../../platform/errors.ts';
import { type LimitedResource, STORAGE_COUNTER, type UsageCounter } from './counters.ts';
import type { EffectiveLimit } from './effective-limit.ts';
import { monthOf } from './periods.ts';

/** Sends no `Retry-After`, since the wait may be weeks; `resets_at` says when a monthly counter restarts. */
export function usageLimitExceeded(
  counter: UsageCounter,
  { limit: nominalLimit, enforcedLimit: limit, source }: EffectiveLimit,
  now: Date,
): AppError {
  const isCustom = source === 'own' || limit !== nominalLimit;
  const isStorage = counter === STORAGE_COUNTER;
  return new AppError('usage_limit_exceeded', {
    detail: isStorage
      ? `This would exceed the organization’s limit of ${limit} bytes of attachments.`
      : `The organization has used all ${limit} ${counter} of this month.`,
    fix: `${isCustom ? 'Raise or remove own_limit (PUT /api/v1/org/limits)' : 'Ask for a higher limit (POST /api/v1/org/upgrade-requests)'}, or ${
      isStorage
        ? 'delete messages (DELETE /api/v1/messages/{id}) or drafts (DELETE /api/v1/drafts/{id}) that have attachments.'
        : 'wait until resets_at.'
    }`,
    extensions: { counter, ...(isStorage ? {} : { resets_at: monthOf(now).end.toISOString() }) },
  });
}

/** For the number of inboxes and domains. */
export function planLimitReached(
  resource: LimitedResource,
  { enforcedLimit: limit }: EffectiveLimit,
): AppError {
  return new AppError('plan_limit_reached', {
    detail: `The organization has reached its limit of ${limit} ${resource}.`,
    fix: `Delete one (DELETE /api/v1/${resource}/{id}), or ask for more: POST /api/v1/org/upgrade-requests.`,
    extensions: { counter: resource },
  });
}

export function isUsageLimitExceeded(error: unknown): error is AppError {
  return error instanceof AppError && error.code === 'usage_limit_exceeded';
}
