import { Type } from 'typebox';
import { text } from '../schemas.ts';

export const MAX_NOTE_LENGTH = 2_000;
/** Of a text that says something: blanks, and characters that are not shown, are no reason. */
export const NOTE_PATTERN = '[\\p{L}\\p{N}]';

/**
 * The reason of a change by staff, of the API and of every form of the console. The logs have it, and the organization reads
 * it in its own.
 */
export const Note = text(MAX_NOTE_LENGTH, {
  minLength: 1,
  pattern: NOTE_PATTERN,
  description:
    'Why. Recorded in the log of the service, and in the audit log of an organization that it concerns, which its members read.',
});

/** Accepts what is refused by default, for example because an account is compromised. */
export const LeaveWithoutBreakGlass = Type.Optional(
  Type.Boolean({
    description:
      'Makes the change although an organization that requires single sign-on is left without an owner who could get in without it. By default that is a conflict.',
  }),
);
