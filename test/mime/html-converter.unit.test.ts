import { spawnSync } from 'node:child_process';
import { constants, getPriority } from 'node:os';
import { resolve } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { ConversionStoppedError, createHtmlConverter } from '../../domain/mime/converter/pool.ts';
import { htmlToText } from '../../domain/mime/html-to-text.ts';
import { sanitizeHtml } from '../../domain/mime/sanitize-html.ts';

const converter = createHtmlConverter({
  entry: resolve(import.meta.dirname, '../../workers/html-converter.ts'),
  processes: 2,
});
const conversions = converter.forOrganization('org_1');
afterAll(() => converter.close());

function childrenOf(parent: number): number[] {
  const { stdout } = spawnSync('ps', ['-o', 'pid=,args=', '--ppid', String(parent)], { encoding: 'utf8' });
  const lines = stdout.split('\n').filter((line) => line.includes('html-converter'));
  return lines.map((line) => Number.parseInt(line, 10));
}

const OPTIONS = { maxBytes: 1_048_576, keepInlineImages: true };
/** A busy machine must not reduce the expected result to its text. */
const UNLIMITED_MS = 60_000;
const SMALL = '<p onclick="x()">Hé <b>you</b></p>';
/** Longer than what is converted in this process. */
const MEDIUM = `<div>${'<p style="color:red">Zoë &amp; <i>you</i> 你</p>'.repeat(200)}</div>`;
const LARGE = '<b>x</b>'.repeat(100_000);

describe('the HTML converter', () => {
  test.each([
    { what: 'short', html: SMALL },
    { what: 'long', html: MEDIUM },
  ])('gives the same results as the functions it runs, for $what HTML', async ({ html }) => {
    expect(await conversions.sanitize(html, OPTIONS)).toBe(sanitizeHtml(html, OPTIONS, UNLIMITED_MS));
    expect(await conversions.toText(html)).toBe(htmlToText(html, UNLIMITED_MS));
  });

  test('marks HTML beyond its limit as truncated', async () => {
    const html = `${'a'.repeat(600_000)}<p>b</p>`;
    expect(await conversions.sanitize(html, OPTIONS)).toBe(sanitizeHtml(html, OPTIONS, UNLIMITED_MS));
  });

  test('does other work while it converts large HTML', async () => {
    const finished: string[] = [];
    const large = conversions.sanitize(LARGE, OPTIONS).then(() => finished.push('large'));
    await conversions.sanitize(SMALL, OPTIONS).then(() => finished.push('small'));
    await large;
    expect(finished).toEqual(['small', 'large']);
  });

  test('is unavailable if its process dies', async () => {
    const dying = createHtmlConverter({
      entry: resolve(import.meta.dirname, 'dying-process.ts'),
      processes: 1,
    });
    for (let run = 0; run < 5; run += 1)
      await expect(dying.forOrganization('org_1').toText(LARGE)).rejects.toThrow(ConversionStoppedError);
    await dying.close();
  });

  test('yields the processor to other processes', async () => {
    await conversions.toText(MEDIUM);
    const children = childrenOf(process.pid);
    expect(children.length).toBeGreaterThan(0);
    expect(children.map((pid) => getPriority(pid))).toEqual(
      children.map(() => constants.priority.PRIORITY_BELOW_NORMAL),
    );
  });

  test('keeps concurrent conversions apart', async () => {
    const sources = Array.from({ length: 20 }, (_, n) => `<p>${String(n).repeat(10_000)}</p>`);
    const texts = await Promise.all(sources.map((html) => conversions.toText(html)));
    expect(texts).toEqual(sources.map((html) => html.slice(3, -4)));
  });
});
