import { expect, test } from '@jest/globals';
import {
  findDecidingMatch,
  LIST_SCOPES,
  type ListEffect,
  type ListScope,
} from '../../domain/deliverability/list-match.ts';

const EFFECTS: (ListEffect | 'both' | null)[] = [null, 'allow', 'block', 'both'];

/** Every way three scopes can speak, with what comes of it: the narrowest that speaks decides, a block over an allow. */
const TABLE = EFFECTS.flatMap((inbox) =>
  EFFECTS.flatMap((environment) =>
    EFFECTS.map((organization) => {
      const said = inbox ?? environment ?? organization;
      return { inbox, environment, organization, expected: said === 'both' ? 'block' : said };
    }),
  ),
);

test.each(TABLE)('$inbox over $environment over $organization: $expected', ({ expected, ...speech }) => {
  const matches = LIST_SCOPES.toReversed().flatMap((scope: ListScope) => {
    const said = speech[scope];
    const effects: ListEffect[] = said === 'both' ? ['allow', 'block'] : said === null ? [] : [said];
    return effects.map((effect) => ({ entry: 'people.example', effect, scope }));
  });
  expect(findDecidingMatch(matches)?.effect ?? null).toBe(expected);
});

test('a blocked domain is not opened by an allowed address of the same scope', () => {
  expect(
    findDecidingMatch([
      { entry: 'ada@people.example', effect: 'allow', scope: 'inbox' },
      { entry: 'people.example', effect: 'block', scope: 'inbox' },
    ]),
  ).toMatchObject({ entry: 'people.example', effect: 'block' });
});
