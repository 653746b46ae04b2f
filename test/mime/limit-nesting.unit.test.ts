import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Parser } from 'htmlparser2';
import { limitNesting, MAX_NESTING } from '../../domain/mime/limit-nesting.ts';

function measureDepth(html: string): number {
  let depth = 0;
  let deepest = 0;
  const parser = new Parser({
    onopentagname() {
      depth += 1;
      deepest = Math.max(deepest, depth);
    },
    onclosetag() {
      depth -= 1;
    },
  });
  parser.end(html);
  return deepest;
}

describe('the nesting limit', () => {
  test('removes the tags of deeper elements and keeps their content', () => {
    const html = `${'<div>'.repeat(MAX_NESTING + 1)}<i class="x">a</i>b<br>${'</div>'.repeat(MAX_NESTING + 1)}c`;
    expect(limitNesting(html)).toBe(`${'<div>'.repeat(MAX_NESTING)}ab<br>${'</div>'.repeat(MAX_NESTING)}c`);
  });

  test('leaves HTML with any number of siblings unchanged, also if their ends are implied', () => {
    for (const html of ['<p>a'.repeat(500), '<li>a'.repeat(500), '<b>a</b>'.repeat(500), 'a < b > c'])
      expect(limitNesting(html)).toBe(html);
  });

  test.each(['title', 'textarea', 'script', 'style'])('finds the elements behind a removed <%s>', (name) => {
    const html = `${'<div>'.repeat(MAX_NESTING)}<${name}>${'<b>'.repeat(50_000)}a`;
    expect(limitNesting(html)).toBe(`${'<div>'.repeat(MAX_NESTING)}a`);
  });

  test('removes every tag if each removed one reveals another', () => {
    const html = `${'<div>'.repeat(MAX_NESTING)}${'<title>'.repeat(10)}a`;
    expect(limitNesting(html).trim()).toBe('a');
  });

  test('leaves no parser with a deep stack', () => {
    const elements = ['b', 'p', 'div', 'br', 'td', 'table', 'svg', 'math', 'foreignObject', 'mi'];
    // The content of these is text, until they are removed.
    const raw = ['title', 'script', 'textarea'];
    const tags = [...elements, ...raw].flatMap((name) => [`<${name}>`, `</${name}>`, `<${name}/>`]);
    const piece = fc.tuple(
      fc.constantFrom(...tags, '<![CDATA[<b>]]>', '<p x="</b>">', '<!-- <b> -->', '</', '<', 'a'),
      fc.integer({ min: 1, max: 150 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        const html = pieces.map(([tag, count]) => tag.repeat(count)).join('');
        // The void elements within the deepest element count as one more level.
        expect(measureDepth(limitNesting(html))).toBeLessThanOrEqual(MAX_NESTING + 2);
      }),
    );
  });
});
