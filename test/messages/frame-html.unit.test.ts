import { describe, expect, test } from '@jest/globals';
import {
  hasRemoteImages,
  listFrameLinks,
  listInlineImages,
  prepareFrameHtml,
} from '../../domain/messages/frame-html.ts';
import { describeUrl } from '../../domain/mime/links/find-links.ts';
import { sanitizeHtml } from '../../domain/mime/sanitize-html.ts';

const sanitize = (html: string) => sanitizeHtml(html, { maxBytes: 100_000, keepInlineImages: true });
const linkTo = (index: number) => `/messages/msg_1/leave?link=${index}&env=x`;
const prepare = (html: string, options: Partial<Parameters<typeof prepareFrameHtml>[1]> = {}) =>
  prepareFrameHtml(sanitize(html), { linkTo, allowsRemoteImages: false, ...options });

describe('links in a frame', () => {
  const LINKS =
    '<a href="https://a.example/?x=1&amp;y=%22">One</a> <a name="top">no link</a> <a href="javascript:alert(1)">bad</a> <A HREF=\'mailto:bob@people.example\'>Mail</A>';

  test('open the page of the service in a new tab without an opener', () => {
    expect(prepare(LINKS)).toBe(
      '<a href="/messages/msg_1/leave?link=0&amp;env=x" target="_blank" rel="noopener noreferrer nofollow">One</a> ' +
        '<a>no link</a> <a>bad</a> ' +
        '<a href="/messages/msg_1/leave?link=1&amp;env=x" target="_blank" rel="noopener noreferrer nofollow">Mail</a>',
    );
  });

  test('have the numbers by which their targets are found', () => {
    expect(listFrameLinks(sanitize(LINKS))).toEqual([
      'https://a.example/?x=1&y=%22',
      'mailto:bob@people.example',
    ]);
  });

  test('become text without a page to open', () => {
    expect(prepare('<a href="https://a.example">One</a>', { linkTo: null })).toBe('<a>One</a>');
  });

  test('written in text and in other attributes are not rewritten', () => {
    const html =
      '<p title="&lt;a href=&quot;https://a.example&quot;&gt;">&lt;a href="https://b.example"&gt;</p>';
    expect(prepare(html)).toBe(sanitize(html));
    expect(listFrameLinks(sanitize(html))).toEqual([]);
  });
});

describe('images in a frame', () => {
  const REMOTE = '<img src="https://track.example/x.png" alt="Logo &lt;1&gt;" width="1">';

  test('of other servers are text, unless the reader asks for them', () => {
    expect(prepare(REMOTE)).toBe('Logo &lt;1&gt;');
    expect(hasRemoteImages(sanitize(REMOTE))).toBe(true);
    expect(prepare(REMOTE, { allowsRemoteImages: true })).toBe(
      '<img src="https://track.example/x.png" alt="Logo &lt;1&gt;" width="1" referrerpolicy="no-referrer">',
    );
  });

  test('of other servers without TLS are never loaded', () => {
    const html = '<img src="http://track.example/x.png" alt="Logo">';
    expect(prepare(html, { allowsRemoteImages: true })).toBe('Logo');
    expect(hasRemoteImages(sanitize(html))).toBe(false);
  });

  test('that the message contains are shown from it', () => {
    const html = '<img src="cid:logo%40people.example" alt="Logo"><img src="cid:missing" alt="Other">';
    expect(listInlineImages(sanitize(html))).toEqual(new Set(['logo@people.example', 'missing']));
    const inlineImages = new Map([['logo@people.example', 'data:image/png;base64,AAAA']]);
    expect(prepare(html, { inlineImages })).toBe('<img src="data:image/png;base64,AAAA" alt="Logo">Other');
  });
});

describe('a link that a person is about to open', () => {
  test.each([
    ['https://login.people.example/x', 'https://login.people.example/x', 'login.people.example', true],
    [
      'https://people.example.evil.test/',
      'https://people.example.evil.test/',
      'people.example.evil.test',
      false,
    ],
    ['https://ada@evil.test/', 'https://ada@evil.test/', 'evil.test', false],
    ['https://péople.example/', 'https://péople.example/', 'xn--pople-bsa.example', false],
    ['mailto:bob@people.example', 'mailto:bob@people.example', null, false],
  ])('%s', (href, url, host, matchesSender) => {
    expect(describeUrl(href, 'ada@people.example')).toEqual({ url, host, matchesSender });
  });

  test.each([
    'javascript:alert(1)',
    'data:text/html,x',
    'java\nscript:alert(1)',
    '//evil.test',
    'https://',
    '',
  ])('%j leads nowhere', (href) => {
    expect(describeUrl(href, 'ada@people.example')).toBeNull();
  });
});
