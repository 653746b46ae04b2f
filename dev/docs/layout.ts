import { markdownPath, pagePath } from './links.ts';
import { escapeHtml, type Heading } from './markdown.ts';

export interface NavigationLink {
  slug: string;
  label: string;
  /** Shown below the link while its page is open. */
  children?: readonly { anchor: string; label: string }[];
}

export interface NavigationSection {
  title: string;
  links: readonly NavigationLink[];
}

/** Files of the site with a fingerprint in their name, by their own name: `docs.css`. */
export type Assets = Readonly<Record<string, string>>;

export interface PageContent {
  slug: string;
  title: string;
  description: string;
  /** The text, from its main heading. */
  html: string;
  headings: readonly Heading[];
  /** The reference shows samples beside the text, in place of a table of contents. */
  isWide?: boolean;
  /** Pages without content of their own, such as the search, have no Markdown. */
  hasMarkdown?: boolean;
}

export interface Frame {
  navigation: readonly NavigationSection[];
  assets: Assets;
}

/** A whole page: header, list of pages, text, table of contents, links to the pages before and after. */
export function renderPage(page: PageContent, { navigation, assets }: Frame): string {
  const { slug, title, description, html, headings, isWide = false, hasMarkdown = true } = page;
  const markdown = hasMarkdown
    ? `<link rel="alternate" type="text/markdown" href="${markdownPath(slug)}" title="Markdown">\n`
    : '<meta name="robots" content="noindex">\n';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · Agent Email Service</title>
<meta name="description" content="${escapeHtml(description)}">
${markdown}<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${assets['docs.css']}">
<script src="${assets['docs.js']}" data-search-index="${assets['search-index.json']}" data-minisearch="${assets['minisearch.js']}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
${renderHeader(slug)}
<div class="columns${isWide ? ' wide' : ''}">
<details class="menu"><summary>Menu</summary>
<nav aria-label="Documents">
${navigation.map((section) => renderSection(section, slug)).join('\n')}
</nav></details>
<main id="main" tabindex="-1">
<article>
${hasMarkdown ? `<p class="as-markdown"><a href="${markdownPath(slug)}">View as Markdown</a></p>` : ''}
${html}
</article>
${renderNeighbors(navigation, slug)}
</main>
${isWide ? '' : renderContents(headings)}
</div>
</body>
</html>
`;
}

function renderHeader(slug: string): string {
  const isReference = slug === 'reference' || slug.startsWith('reference/');
  const current = (isCurrent: boolean) => (isCurrent ? ' aria-current="true"' : '');
  return `<header>
<a class="brand" href="/docs"><img src="/assets/icon.svg" alt="" width="24" height="24">Agent Email Service</a>
<nav aria-label="Parts"><a href="/docs"${current(!isReference)}>Guides</a><a href="/docs/reference"${current(isReference)}>Reference</a></nav>
<a class="search-link" href="/docs/search">Search<kbd>/</kbd></a>
<button type="button" class="theme" hidden>Theme</button>
<a class="sign-in" href="/login">Sign in</a>
</header>`;
}

function renderSection({ title, links }: NavigationSection, slug: string): string {
  const items = links.map((link) => {
    const isCurrent = link.slug === slug;
    const children = isCurrent && link.children?.length ? renderChildren(link.children) : '';
    return `<li><a href="${pagePath(link.slug)}"${isCurrent ? ' aria-current="page"' : ''}>${escapeHtml(link.label)}</a>${children}</li>`;
  });
  return `<section><h2>${escapeHtml(title)}</h2><ul>${items.join('')}</ul></section>`;
}

const renderChildren = (children: NonNullable<NavigationLink['children']>): string =>
  `<ul>${children.map(({ anchor, label }) => `<li><a href="#${escapeHtml(anchor)}">${escapeHtml(label)}</a></li>`).join('')}</ul>`;

function renderContents(headings: readonly Heading[]): string {
  const listed = headings.filter(({ level }) => level === 2 || level === 3);
  if (listed.length < 2) return '<div></div>';
  // A long page lists its main sections alone.
  const shown = listed.length > 30 ? listed.filter(({ level }) => level === 2) : listed;
  const items = shown.map(
    ({ level, text, anchor }) =>
      `<li class="level-${level}"><a href="#${escapeHtml(anchor)}">${escapeHtml(text)}</a></li>`,
  );
  return `<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>${items.join('')}</ul></nav>`;
}

function renderNeighbors(navigation: readonly NavigationSection[], slug: string): string {
  const all = navigation.flatMap(({ links }) => links);
  const index = all.findIndex((link) => link.slug === slug);
  if (index < 0) return '';
  const link = (neighbor: NavigationLink | undefined, rel: string, word: string) =>
    neighbor
      ? `<a rel="${rel}" href="${pagePath(neighbor.slug)}"><small>${word}</small>${escapeHtml(neighbor.label)}</a>`
      : '<span></span>';
  return `<nav class="neighbors" aria-label="Pages before and after">${link(all[index - 1], 'prev', 'Previous')}${link(all[index + 1], 'next', 'Next')}</nav>`;
}
