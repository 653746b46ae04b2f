import { text } from '../schemas.ts';

/** The reason of a change by staff. */
export const Note = text(2_000, { minLength: 1, description: 'Why. It is in the log of the service.' });
