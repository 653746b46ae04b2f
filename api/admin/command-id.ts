import { text } from '../schemas.ts';

/** A row of the outbox: a whole number. */
export const CommandId = text(19, { pattern: '^[1-9][0-9]{0,18}$', description: 'Id of the command.' });
