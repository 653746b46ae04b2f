import { Type } from 'typebox';
import { enumOf } from '../../api/schemas.ts';
import { KEY_PERMISSIONS, type Permission } from '../../domain/identity/permissions.ts';
import { invalid } from '../../platform/errors.ts';

const One = enumOf(KEY_PERMISSIONS);
/** A form sends one checked box as a text, and several as a list. */
export const ChosenPermissions = Type.Optional(
  Type.Union([One, Type.Array(One, { maxItems: KEY_PERMISSIONS.length })]),
);

export const readPermissions = (chosen: Permission | Permission[] | undefined): Permission[] =>
  chosen === undefined ? [] : [chosen].flat();

/** Lines or words. */
export const readLines = (entered = ''): string[] => entered.split(/[\s,]+/).filter(Boolean);

/**
 * The end of the day that a person has chosen (UTC); null for an empty field.
 *
 * @throws AppError `validation_error`.
 */
export function readExpiry(day: string | undefined): Date | null {
  if (!day) return null;
  const end = new Date(`${day}T23:59:59.999Z`);
  if (/^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(end.getTime())) return end;
  throw invalid(
    '/body/expires_at',
    'must be a day such as 2027-01-31',
    'Choose a day, or leave the field empty.',
  );
}
