import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BASE_URL, rewriteMarkdownLinks, useOwnAddress } from './links.ts';
import { firstParagraph, type Heading, readSections, renderMarkdown } from './markdown.ts';
import { type GuideEntry, NAVIGATION } from './navigation.ts';

/** A guide, in both representations. */
export interface Guide extends GuideEntry {
  title: string;
  description: string;
  html: string;
  markdown: string;
  headings: readonly Heading[];
  links: readonly { slug: string; anchor: string }[];
  sections: ReturnType<typeof readSections>;
  audience: (typeof NAVIGATION)[number]['audience'];
  group: string;
}

const ROOT = join(import.meta.dirname, '../..');

export function readGuides(): Guide[] {
  return NAVIGATION.flatMap(({ title: group, audience, guides }) =>
    guides.map((entry) => {
      const file = readFileSync(join(ROOT, entry.file), 'utf8');
      const source = entry.title === undefined ? file : file.replace(/^# .*/, `# ${entry.title}`);
      // Operators' pages also name addresses of other services.
      const text = audience === 'users' ? useOwnAddress(source) : source;
      const { html, headings, links } = renderMarkdown(text, entry.file);
      return {
        ...entry,
        title: headings[0]?.text ?? entry.file,
        description: shorten(firstParagraph(text)),
        html,
        markdown: rewriteMarkdownLinks(text, entry.file),
        headings,
        links,
        sections: readSections(text.replaceAll(BASE_URL, '')),
        audience,
        group,
      };
    }),
  );
}

const MAX_DESCRIPTION = 200;

/** The first whole sentences, as far as they fit. What a colon or a list would end is not whole. */
export function shorten(text: string): string {
  const [first = '', ...others] = text.split(/(?<=[.!?:])\s+(?=["`*(]?[A-Z])/);
  let short = first;
  for (const sentence of others) {
    if (short.length + sentence.length >= MAX_DESCRIPTION || !/[.!?]\W*$/.test(sentence)) break;
    short += ` ${sentence}`;
  }
  if (short.length > MAX_DESCRIPTION) return `${short.slice(0, short.lastIndexOf(' ', MAX_DESCRIPTION))} …`;
  return short.replace(/:$/, '.');
}

/** Links between guides that lead to no page or heading. */
export function findBrokenLinks(guides: readonly Guide[]): string[] {
  const anchors = new Map(
    guides.map(({ slug, headings }) => [slug, new Set(headings.map(({ anchor }) => anchor))]),
  );
  return guides.flatMap(({ file, links }) =>
    links
      .filter(({ slug, anchor }) => anchor !== '' && !anchors.get(slug)?.has(anchor))
      .map(({ slug, anchor }) => `${file}: /docs/${slug}#${anchor}`),
  );
}
