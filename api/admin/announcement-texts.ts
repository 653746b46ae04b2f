import { text } from '../schemas.ts';

export const MAX_TEXT = 5_000;
/** The subject of its emails: one line that says something. */
export const Title = text(200, { minLength: 1, pattern: '^[^\\p{Cc}]*[\\p{L}\\p{N}][^\\p{Cc}]*$' });
export const AnnouncementText = text(MAX_TEXT, {
  minLength: 1,
  pattern: '\\S',
  description: 'Plain text. An empty line separates paragraphs.',
});
