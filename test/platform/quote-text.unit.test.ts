import { expect, test } from '@jest/globals';
import { PostgreSqlPlatform } from '@mikro-orm/postgresql';
import fc from 'fast-check';
import pg from 'pg';
import { quoteText } from '../../platform/database/quote-text.ts';

const character = fc.oneof(
  fc.constantFrom("'", '\\', 'E', '"', '?', '$', '\n', '\0', '\ud800'),
  fc.string({ unit: 'binary', maxLength: 2 }),
);
const text = fc.array(character).map((characters) => characters.join(''));

test('quotes a literal like the PostgreSQL client and the ORM', () => {
  // The ORM's method is private. This fails if it can no longer be replaced.
  const orm = new PostgreSqlPlatform() as unknown as { escapeLiteral(value: string): string };
  fc.assert(
    fc.property(text, (value) => {
      expect(quoteText(value)).toBe(pg.escapeLiteral(value));
      expect(quoteText(value)).toBe(orm.escapeLiteral(value));
    }),
    { numRuns: 5_000 },
  );
});
