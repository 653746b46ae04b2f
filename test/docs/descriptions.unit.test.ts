import { expect, test } from '@jest/globals';
import { readGuides, shorten } from '../../dev/docs/guides.ts';

const LONG = `Word${' word'.repeat(30)}.`;

test.each([
  ['a short text', 'A server sends mail. It is fast.', 'A server sends mail. It is fast.'],
  ['what a colon introduces', 'A person approves what agents send:', 'A person approves what agents send.'],
  ['a sentence that introduces a list', 'Mail is sent. An address is added: Do this', 'Mail is sent.'],
  ['a sentence that a list ends', 'Mail is sent. An address is added', 'Mail is sent.'],
  ['a colon within a sentence', 'Two ways: a stream, and a wait.', 'Two ways: a stream, and a wait.'],
  ['a second sentence that does not fit', `First. ${LONG} ${LONG}`, `First. ${LONG}`],
])('the description of a page: %s', (_, text, description) => {
  expect(shorten(text)).toBe(description);
});

test('no guide is described by a part of a sentence', () => {
  const guides = readGuides();
  expect(guides.length).toBeGreaterThan(20);
  const cut = guides.filter(({ description }) => !/[.!?…]["`*)]?$/.test(description));
  expect(cut.map(({ file, description }) => `${file}: ${description}`)).toEqual([]);
});
