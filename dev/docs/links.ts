import { posix } from 'node:path';
import { BASE_URL } from '../../api/docs/site-files.ts';
import { NAVIGATION, PLAIN_FILES } from './navigation.ts';

export { BASE_URL };

const SLUGS = new Map(
  NAVIGATION.flatMap(({ guides }) => guides.map(({ file, slug }) => [file, slug] as const)),
);

/** The address of a page of the site. */
export const pagePath = (slug: string): string => (slug === '' ? '/docs' : `/docs/${slug}`);
/** The address of the same page as Markdown. */
export const markdownPath = (slug: string): string => `/docs/${slug === '' ? 'index' : slug}.md`;

/** Where a link of a guide leads on the site. */
export type Target =
  | { kind: 'page'; slug: string; anchor: string }
  | { kind: 'file'; path: string }
  | { kind: 'elsewhere' }
  /** Of the repository alone: the site shows the words without a link. */
  | { kind: 'none' };

/**
 * @param from the file that has the link, from the root of the repository.
 */
export function resolveLink(from: string, href: string): Target {
  if (/^(?:[a-z]+:|\/)/i.test(href)) return { kind: 'elsewhere' };
  const [path = '', anchor = ''] = href.split('#');
  const file = path === '' ? from : posix.normalize(posix.join(posix.dirname(from), path));
  const slug = SLUGS.get(file);
  if (slug !== undefined) return { kind: 'page', slug, anchor };
  if (file.startsWith('docs/images/') || PLAIN_FILES.test(file))
    return { kind: 'file', path: `/docs/${file.slice('docs/'.length)}` };
  return { kind: 'none' };
}

/** Makes the anchors of a page's headings as GitHub does, in their order: a repeated heading gets a number. */
export function createAnchors(): (heading: string) => string {
  const counts = new Map<string, number>();
  return (heading) => {
    const plain = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    const count = counts.get(plain) ?? 0;
    counts.set(plain, count + 1);
    return count === 0 ? plain : `${plain}-${count}`;
  };
}

/** Rewrites the links of a guide for its Markdown on the site: absolute, and to other pages as Markdown. */
export function rewriteMarkdownLinks(text: string, from: string): string {
  return outsideCode(text, (prose) =>
    prose.replace(
      /(!?)\[((?:[^\][]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g,
      (whole, mark: string, words: string, href: string) => {
        const target = resolveLink(from, href);
        if (target.kind === 'elsewhere')
          return href.startsWith('/') ? `${mark}[${words}](${BASE_URL}${href})` : whole;
        if (target.kind === 'none') return words;
        if (target.kind === 'file') return `${mark}[${words}](${BASE_URL}${target.path})`;
        const anchor = target.anchor === '' ? '' : `#${target.anchor}`;
        return `[${words}](${BASE_URL}${markdownPath(target.slug)}${anchor})`;
      },
    ),
  );
}

const FENCES = /^( *)(```+)[^\n]*\n[\s\S]*?^\1\2 *$/gm;

/** Changes the text between fenced blocks. */
export function outsideCode(text: string, change: (prose: string) => string): string {
  const parts: string[] = [];
  let end = 0;
  for (const match of text.matchAll(FENCES)) {
    parts.push(change(text.slice(end, match.index)), match[0]);
    end = match.index + match[0].length;
  }
  return [...parts, change(text.slice(end))].join('');
}

/** Addresses of an installation in samples. */
const SAMPLE_URLS = /https:\/\/mail\.example\.com|http:\/\/(?:localhost|127\.0\.0\.1):3000/g;

/** Samples call the service that shows them. */
export const useOwnAddress = (text: string): string =>
  text.replace(FENCES, (block) => block.replace(SAMPLE_URLS, BASE_URL));
