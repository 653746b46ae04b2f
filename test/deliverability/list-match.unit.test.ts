import { expect, test } from '@jest/globals';
import {
  findDecidingMatch,
  LIST_SCOPES,
  type ListEffect,
  type ListScope,
} from '../../domain/deliverability/list-match.ts';

const EFFECTS: (ListEffect | 'both' | null)[] = [null, 'allow', 'block', 'both'];

/**
 * All combinations of entries in the three scopes: the narrowest scope with an entry applies, and block takes
 * precedence over allow.
 */
const TABLE = EFFECTS.flatMap((inbox) =>
  EFFECTS.flatMap((environment) =>
    EFFECTS.map((organization) => {
      const narrowest = inbox ?? environment ?? organization;
      return { inbox, environment, organization, expected: narrowest === 'both' ? 'block' : narrowest };
    }),
  ),
);

test.each(TABLE)(
  '$inbox over $environment over $organization gives $expected',
  ({ expected, ...effectsOf }) => {
    const matches = LIST_SCOPES.toReversed().flatMap((scope: ListScope) => {
      const given = effectsOf[scope];
      const effects: ListEffect[] = given === 'both' ? ['allow', 'block'] : given === null ? [] : [given];
      return effects.map((effect) => ({ entry: 'people.example', effect, scope, authenticated: false }));
    });
    expect(findDecidingMatch(matches)?.effect ?? null).toBe(expected);
  },
);

test('an allowed address does not override a blocked domain of the same scope', () => {
  expect(
    findDecidingMatch([
      { entry: 'ada@people.example', effect: 'allow', scope: 'inbox', authenticated: false },
      { entry: 'people.example', effect: 'block', scope: 'inbox', authenticated: false },
    ]),
  ).toMatchObject({ entry: 'people.example', effect: 'block' });
});
