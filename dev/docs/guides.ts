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

/** The first sentences, as far as they fit. */
function shorten(text: string): string {
  if (text.length <= MAX_DESCRIPTION) return text;
  const cut = text.slice(0, MAX_DESCRIPTION);
  const end = Math.max(cut.lastIndexOf('. '), cut.lastIndexOf(': '));
  return end > 60 ? `${cut.slice(0, end)}.` : `${cut.slice(0, cut.lastIndexOf(' '))} …`;
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
