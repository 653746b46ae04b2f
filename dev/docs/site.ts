import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, extname, join } from 'node:path';
import { findBrokenLinks, type Guide, readGuides } from './guides.ts';
import { type Assets, type Frame, type NavigationSection, type PageContent, renderPage } from './layout.ts';
import { BASE_URL, markdownPath, pagePath } from './links.ts';
import { buildLlmsFullTxt, buildLlmsTxt } from './llms.ts';
import { escapeHtml } from './markdown.ts';
import { NAVIGATION, PLAIN_FILES } from './navigation.ts';
import { buildReference, type ReferencePage } from './reference/build.ts';
import type { OpenApi } from './reference/openapi.ts';
import { buildSearchIndex, type SearchEntry } from './search.ts';

/** The files of the site by path, such as `webhooks.html`, `webhooks.md` and `assets/docs.1a2b.css`. */
export type Site = ReadonlyMap<string, string | Buffer>;

const ROOT = join(import.meta.dirname, '../..');
const MINISEARCH = createRequire(import.meta.url)
  .resolve('minisearch')
  .replace(/cjs.index\.cjs$/, 'umd/index.js');

/**
 * Builds the whole site from the guides and the OpenAPI document.
 *
 * @throws Error if a guide links to a heading that does not exist.
 */
export function buildSite(openapi: object): Site {
  const guides = readGuides();
  const broken = findBrokenLinks(guides);
  if (broken.length > 0) throw new Error(`Broken links:\n${broken.join('\n')}`);
  const reference = buildReference(openapi as OpenApi);
  const files = new Map<string, string | Buffer>();
  const assets = addAssets(files, [
    ...guides.flatMap(entriesOf),
    ...reference.flatMap(({ entries }) => entries),
  ]);
  const frame = { assets, guides: navigationOfGuides(guides), reference: navigationOfReference(reference) };
  for (const guide of guides)
    addPage(files, { ...guide, html: guide.html }, { assets, navigation: frame.guides }, guide.markdown);
  const referenceFrame = { assets, navigation: frame.reference };
  for (const page of reference)
    addPage(files, { ...page, headings: [], isWide: true }, referenceFrame, page.markdown);
  const overview = referenceOverview(reference);
  addPage(files, overview.content, referenceFrame, overview.markdown);
  addPage(files, searchPage(guides, reference), { assets, navigation: frame.guides });
  addPage(files, NOT_FOUND, { assets, navigation: frame.guides });
  files.set('llms.txt', buildLlmsTxt(guides, reference));
  files.set('llms-full.txt', buildLlmsFullTxt(guides, reference));
  addPlainFiles(files);
  return files;
}

function addPage(
  files: Map<string, string | Buffer>,
  page: PageContent,
  frame: Frame,
  markdown?: string,
): void {
  const name = page.slug === '' ? 'index' : page.slug;
  files.set(`${name}.html`, renderPage({ ...page, hasMarkdown: markdown !== undefined }, frame));
  if (markdown !== undefined) files.set(`${name}.md`, markdown);
}

/** What users look for comes before what operators and contributors do. */
const WEIGHTS: Readonly<Record<Guide['audience'], number>> = {
  users: 1.6,
  operators: 0.8,
  contributors: 0.6,
};

/** The methods that the samples of a client's own page call: who looks for one of them looks for that page. */
const calledIn = ({ file }: Guide, words: string): string =>
  file.startsWith('clients/')
    ? [...words.matchAll(/\b(?:client|webhooks)\.([\w.]+)\(/g)].map(([, name]) => name).join(' ')
    : '';

const entriesOf = (guide: Guide): SearchEntry[] => {
  const { slug, title, sections, audience } = guide;
  return sections.map(({ heading, anchor, words }) => ({
    url: anchor === '' ? pagePath(slug) : `${pagePath(slug)}#${anchor}`,
    page: title,
    heading,
    names: calledIn(guide, words),
    words,
    weight: WEIGHTS[audience],
  }));
};

/** Under names with a fingerprint, so that browsers keep them. */
function addAssets(files: Map<string, string | Buffer>, entries: readonly SearchEntry[]): Assets {
  const own = (name: string) => readFileSync(join(import.meta.dirname, 'assets', name), 'utf8');
  const sources: Record<string, string> = {
    'docs.css': own('docs.css'),
    'docs.js': own('docs.js'),
    'minisearch.js': readFileSync(MINISEARCH, 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, ''),
    'search-index.json': buildSearchIndex(entries),
  };
  return Object.fromEntries(
    Object.entries(sources).map(([name, content]) => {
      const fingerprint = createHash('sha256').update(content).digest('hex').slice(0, 10);
      const path = `assets/${basename(name, extname(name))}.${fingerprint}${extname(name)}`;
      files.set(path, content);
      return [name, `/docs/${path}`];
    }),
  );
}

function addPlainFiles(files: Map<string, string | Buffer>): void {
  for (const path of globSync('docs/**/*.*', { cwd: ROOT }))
    if (PLAIN_FILES.test(path)) files.set(path.slice('docs/'.length), readFileSync(join(ROOT, path), 'utf8'));
  for (const path of globSync('docs/images/*.png', { cwd: ROOT }))
    files.set(path.slice('docs/'.length), readFileSync(join(ROOT, path)));
}

function navigationOfGuides(guides: readonly Guide[]): NavigationSection[] {
  return NAVIGATION.map(({ title }) => ({
    title,
    links: guides
      .filter(({ group }) => group === title)
      .map(({ slug, label, title: pageTitle }) => ({ slug, label: label ?? pageTitle })),
  }));
}

function navigationOfReference(reference: readonly ReferencePage[]): NavigationSection[] {
  const links = (pages: readonly ReferencePage[]) =>
    pages.map(({ slug, title, children }) => ({ slug, label: title, children }));
  return [
    {
      title: 'Reference',
      links: [
        { slug: 'reference', label: 'Overview' },
        ...links(reference.filter(({ isForStaff }) => !isForStaff)),
      ],
    },
    { title: 'Staff', links: links(reference.filter(({ isForStaff }) => isForStaff)) },
  ];
}

const OVERVIEW = `Every operation of the API, with its parameters, answers and errors. Guides explain how they work together: begin with the quickstart, and read what holds for every operation in “Using the API”.`;

function referenceOverview(reference: readonly ReferencePage[]): { content: PageContent; markdown: string } {
  const rows = reference.map(
    ({ slug, title, description }) =>
      `<li><a href="${pagePath(slug)}"><b>${escapeHtml(title)}</b><span>${escapeHtml(description)}</span></a></li>`,
  );
  const html = `<h1>API reference</h1>
<p>Every operation of the API, with its parameters, answers and errors. Guides explain how they work together: begin with the <a href="/docs/quickstart">quickstart</a>, and read what holds for every operation in <a href="/docs/api">Using the API</a>.</p>
<p>The same as <a href="/openapi.json">OpenAPI 3.1</a>, and the part that agents need as <a href="/openapi/agent.json">a small document</a>. Every error has a <a href="/docs/errors">stable code and a fix</a>.</p>
<ul class="cards">${rows.join('\n')}</ul>`;
  const markdown = `# API reference\n\n${OVERVIEW}\n\n${reference.map(({ slug, title, description }) => `- [${title}](${BASE_URL}${markdownPath(slug)}): ${description}`).join('\n')}\n`;
  return {
    content: {
      slug: 'reference',
      title: 'API reference',
      description: OVERVIEW,
      html,
      headings: [],
      isWide: true,
    },
    markdown,
  };
}

/** Without a script, it is the list of all pages. */
function searchPage(guides: readonly Guide[], reference: readonly ReferencePage[]): PageContent {
  const link = ({ slug, title, description }: { slug: string; title: string; description: string }) =>
    `<li><a href="${pagePath(slug)}">${escapeHtml(title)}</a> <span>${escapeHtml(description)}</span></li>`;
  const groups = NAVIGATION.map(
    ({ title }) =>
      `<h2>${escapeHtml(title)}</h2><ul>${guides
        .filter(({ group }) => group === title)
        .map(link)
        .join('')}</ul>`,
  );
  const html = `<h1>Search</h1>
<form class="search" role="search" action="/docs/search"><label for="query">Words, an operation or an error code</label><input type="search" id="query" name="q" maxlength="200" autocomplete="off"></form>
<p class="count" role="status"></p>
<ol class="results"></ol>
<div class="all-pages">${groups.join('')}<h2>Reference</h2><ul>${reference.map(link).join('')}</ul></div>`;
  return {
    slug: 'search',
    title: 'Search',
    description: 'Search the documents, or see all pages.',
    html,
    headings: [],
  };
}

const NOT_FOUND: PageContent = {
  slug: '404',
  title: 'Page not found',
  description: 'This page does not exist.',
  html: `<h1>Page not found</h1>
<p>There is no page at this address. Search for it, or begin with the <a href="/docs">overview</a>.</p>
<form class="search" role="search" action="/docs/search"><label for="query">Words, an operation or an error code</label><input type="search" id="query" name="q" maxlength="200"><button>Search</button></form>`,
  headings: [],
};
