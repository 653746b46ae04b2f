import { Type } from 'typebox';
import { text } from '../schemas.ts';

/** The reason of a change by staff. */
export const Note = text(2_000, { minLength: 1, description: 'Why. It is in the log of the service.' });

/** Accepts what is refused by default, for example because an account is compromised. */
export const LeaveWithoutBreakGlass = Type.Optional(
  Type.Boolean({
    description:
      'Makes the change although an organization that requires single sign-on is left without an owner who could get in without it. By default that is a conflict.',
  }),
);
