import { type Static, type TProperties, Type } from 'typebox';
import { strictObject } from '../../api/schemas.ts';
import { STORAGE_COUNTER, USAGE_COUNTERS, type UsageCounter } from '../../domain/usage/counters.ts';
import { allowedLimit, type EffectiveLimit } from '../../domain/usage/effective-limit.ts';
import type { CustomLimitChange, OrganizationLimits } from '../../domain/usage/limit.service.ts';
import { AppError, invalid } from '../../platform/errors.ts';

export type LimitSource = EffectiveLimit['source'];

const MIB_BYTES = 1024 ** 2;
/** People give storage in MiB, and everything else as a number. */
const unitOf = (counter: UsageCounter): number => (counter === STORAGE_COUNTER ? MIB_BYTES : 1);

const digits = (maxLength: number) =>
  Type.Optional(Type.Unsafe<string>({ type: 'string', maxLength, pattern: '^\\d*$' }));

const FIELDS: TProperties = Object.fromEntries(
  USAGE_COUNTERS.flatMap((counter) => [
    [`own_${counter}`, digits(12)],
    [`warn_${counter}`, digits(2)],
  ]),
);
/** Two fields for each counter: the own limit, empty for none, and the share at which owners are warned. */
export const LimitForm = strictObject(FIELDS);

/** What the form shows. */
export const limitFields = ({ counters }: OrganizationLimits) =>
  counters.map(({ counter, limitInputs, warningPercent }) => {
    const allowed = allowedLimit(counter, limitInputs).limit;
    return {
      counter,
      isStorage: counter === STORAGE_COUNTER,
      own: inUnits(counter, limitInputs.customLimit),
      warn: String(warningPercent),
      allowed: allowed === null ? null : Math.floor(allowed / unitOf(counter)),
    };
  });

const inUnits = (counter: UsageCounter, amount: number | null): string =>
  amount === null ? '' : String(Math.floor(amount / unitOf(counter)));

/**
 * Only what the person has changed, so that two people do not undo each other's limits.
 *
 * @throws AppError `validation_error`.
 */
export function readLimitForm(
  form: Static<typeof LimitForm>,
  limits: OrganizationLimits,
): Partial<Record<UsageCounter, CustomLimitChange>> {
  const entered = form as Record<string, string | undefined>;
  const changes: Partial<Record<UsageCounter, CustomLimitChange>> = {};
  for (const { counter, own, warn, allowed } of limitFields(limits)) {
    const newOwn = entered[`own_${counter}`] ?? own;
    const newWarn = entered[`warn_${counter}`] ?? warn;
    const limit = newOwn === '' ? null : Number(newOwn);
    const most = allowed ?? Math.floor(Number.MAX_SAFE_INTEGER / unitOf(counter));
    if (limit !== null && limit > most)
      throw invalid(`/body/own_${counter}`, `must be at most ${most}`, 'Enter a lower limit, or none.');
    if (newWarn !== '' && Number(newWarn) < 1)
      throw invalid(`/body/warn_${counter}`, 'must be from 1 to 99', 'Leave it empty for 80%.');
    const change = {
      ...(newOwn === own ? {} : { limit: limit === null ? null : limit * unitOf(counter) }),
      ...(newWarn === warn ? {} : { warningPercent: newWarn === '' ? null : Number(newWarn) }),
    };
    if (Object.keys(change).length > 0) changes[counter] = change;
  }
  if (Object.keys(changes).length > 0) return changes;
  throw new AppError('validation_error', {
    detail: 'Nothing is changed.',
    fix: 'Enter a limit or a share first.',
  });
}
