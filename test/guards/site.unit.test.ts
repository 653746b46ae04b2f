import { globSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { NAVIGATION } from '../../dev/docs/navigation.ts';

/** Pages that the site leaves out, with the reason. */
const LEFT_OUT: Record<string, string> = {
  'docs/decisions': 'for contributors, who read them beside the code',
};

test('the site has every page of docs/, or a reason to leave it out', () => {
  const shown = NAVIGATION.flatMap(({ guides }) => guides.map(({ file }) => file));
  const missing = globSync('docs/**/*.md')
    .filter((file) => !shown.includes(file))
    .filter((file) => !Object.keys(LEFT_OUT).some((folder) => file.startsWith(`${folder}/`)));
  expect(shown.length).toBeGreaterThan(30);
  expect(missing).toEqual([]);
});

test('no two pages of the site share an address', () => {
  const slugs = NAVIGATION.flatMap(({ guides }) => guides.map(({ slug }) => slug));
  expect(slugs.filter((slug, index) => slugs.indexOf(slug) !== index)).toEqual([]);
  expect(slugs.filter((slug) => /^(?:reference|assets|images|search|404|index)(?:$|\/)/.test(slug))).toEqual(
    [],
  );
});
