import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { compareTexts, MAX_DIFFERENCE_LINES } from '../../domain/drafts/text-difference.ts';
import { expectComputedWithin } from '../support/expect-within.ts';

const show = (before: string, after: string) =>
  compareTexts(before, after).map(({ change, text }) => `${change} ${text}`);

describe('the comparison of two texts', () => {
  test('shows changed lines with two lines around them', () => {
    const lines = Array.from({ length: 12 }, (_, index) => `line ${index}`);
    const changed = lines.with(6, 'other').toSpliced(10, 1);
    expect(show(lines.join('\n'), changed.join('\r\n'))).toEqual([
      'omitted 4 unchanged lines',
      'same line 4',
      'same line 5',
      'removed line 6',
      'added other',
      'same line 7',
      'same line 8',
      'same line 9',
      'removed line 10',
      'same line 11',
    ]);
  });

  test('is empty for equal texts, and shows a text that was added or removed', () => {
    expect(show('a', 'a')).toEqual([]);
    expect(show('', 'a\nb')).toEqual(['added a', 'added b']);
    expect(show('a', '')).toEqual(['removed a']);
  });

  test('has both texts in it', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 4 });
    fc.assert(
      fc.property(text, text, (old, current) => {
        const lines = compareTexts(`${old.join('\n')}\nend`, `${current.join('\n')}\nend`);
        if (lines.length === 0) return old.join('\n') === current.join('\n');
        if (lines.some(({ change }) => change === 'omitted')) return true;
        const side = (change: string) =>
          lines.filter((line) => line.change === 'same' || line.change === change).map((line) => line.text);
        expect(side('removed').join('\n')).toBe(`${old.join('\n')}\nend`);
        expect(side('added').join('\n')).toBe(`${current.join('\n')}\nend`);
        return true;
      }),
    );
  });

  test('of long texts takes bounded time and room', () => {
    const text = (offset: number) =>
      Array.from({ length: 30_000 }, (_, index) => String((index * 7 + offset) % 11)).join('\n');
    const lines = expectComputedWithin(1_000, () => compareTexts(text(0), text(1)));
    expect(lines).toHaveLength(MAX_DIFFERENCE_LINES);
    expect(lines.at(-1)?.change).toBe('omitted');
  });
});
