import MarkdownIt, { type Env, type Token } from 'markdown-it';
import { readDiagram } from './diagrams.ts';
import { highlight } from './highlighting.ts';
import { createAnchors, pagePath, resolveLink } from './links.ts';

export interface Heading {
  level: number;
  /** As words, without marks. */
  text: string;
  anchor: string;
}

export interface Rendered {
  html: string;
  headings: Heading[];
  /** Addresses of pages of the site, with their anchors, that the text links to. */
  links: { slug: string; anchor: string }[];
}

interface PageEnv extends Env {
  file: string;
  headings: Heading[];
  links: Rendered['links'];
  anchors: (heading: string) => string;
  /** Makes ids of the page's controls unique. */
  tabs: { count: number };
}

/** Not a sample of what the next block does in another language. */
const INSTALLS = /^\s*(?:npm|npx|pip|uv) /;

const TAB_NAMES: Readonly<Record<string, string>> = {
  sh: 'curl',
  bash: 'curl',
  ts: 'TypeScript',
  python: 'Python',
  go: 'Go',
};

const md = new MarkdownIt({ html: true });
export const escapeHtml = md.utils.escapeHtml;

/**
 * Renders a page of Markdown.
 *
 * @param file where its links start from, from the root of the repository.
 * @param tabs counts the groups of samples if a page is rendered in parts.
 */
export function renderMarkdown(text: string, file: string, tabs = { count: 0 }): Rendered {
  const env: PageEnv = { file, headings: [], links: [], anchors: createAnchors(), tabs };
  const html = md.renderer.render(groupSamples(md.parse(text, env)), md.options, env);
  return { html, headings: env.headings, links: env.links };
}

/** Sample blocks of different languages that follow each other become one token. */
function groupSamples(tokens: readonly Token[]): Token[] {
  const grouped: Token[] = [];
  for (const token of tokens) {
    const previous = grouped.at(-1);
    const language = languageOf(token);
    const started = previous && (previous.meta as { samples?: Token[] } | null)?.samples;
    const isSample = previous?.type === 'fence' && !INSTALLS.test(previous.content);
    const samples = started ?? (isSample ? [previous] : []);
    const isNext =
      previous?.level === token.level &&
      samples.length > 0 &&
      language in TAB_NAMES &&
      samples.every((each) => TAB_NAMES[languageOf(each)] !== undefined && languageOf(each) !== language);
    if (token.type !== 'fence' || !isNext) grouped.push(token);
    else if (started) started.push(token);
    else
      grouped[grouped.length - 1] = Object.assign(Object.create(Object.getPrototypeOf(token)), token, {
        type: 'samples',
        meta: { samples: [previous, token] },
      });
  }
  return grouped;
}

const languageOf = ({ info }: Token): string => info.trim().split(/\s+/)[0] ?? '';

function renderFence(token: Token): string {
  const language = languageOf(token);
  if (language === 'mermaid') return renderDiagram(token.content);
  return renderCode(token.content, language);
}

/** The block can be scrolled with the keyboard. */
export function renderCode(code: string, language: string): string {
  const html = highlight(code, language) ?? escapeHtml(code);
  return `<div class="code"><pre tabindex="0"><code class="hljs">${html}</code></pre></div>\n`;
}

/** Radio buttons show one of the samples, without a script. */
function renderSamples(samples: readonly Token[], group: string): string {
  return renderTabs(
    samples.map((sample) => ({ language: languageOf(sample), code: sample.content })),
    group,
  );
}

export function renderTabs(samples: readonly { language: string; code: string }[], group: string): string {
  const parts = samples.map(({ language, code }, index) => {
    const id = `${group}-${index}`;
    const name = TAB_NAMES[language] ?? language;
    return `<input type="radio" name="${group}" id="${id}" value="${name}"${index === 0 ? ' checked' : ''}><label for="${id}">${name}</label>${renderCode(code, language)}`;
  });
  return `<fieldset class="tabs"><legend>Language of the sample</legend>${parts.join('')}</fieldset>\n`;
}

function renderDiagram(source: string): string {
  const steps = readDiagram(source).map((step) => {
    if ('note' in step) return `<li class="note">${inline(step.note)}</li>`;
    const ends = `<b>${inline(step.from || 'Start')}</b> → <b>${inline(step.to || 'End')}</b>`;
    return `<li>${ends}${step.text === '' ? '' : `<span>${inline(step.text)}</span>`}</li>`;
  });
  // Of a graph, the order says nothing.
  const tag = source.trimStart().startsWith('sequenceDiagram') ? 'ol' : 'ul';
  return `<${tag} class="steps">${steps.join('')}</${tag}>\n`;
}

const inline = (text: string): string => escapeHtml(text);

md.renderer.rules.fence = (tokens, index) => renderFence(tokens[index] as Token);
md.renderer.rules.samples = (tokens, index, _options, env) => {
  const { tabs } = env as PageEnv;
  tabs.count += 1;
  const { samples } = (tokens[index] as Token).meta as { samples: Token[] };
  return renderSamples(samples, `samples-${tabs.count}`);
};
// An empty cell heads nothing.
md.renderer.rules.th_open = (tokens, index) => (tokens[index + 1]?.content === '' ? '<td>' : '<th>');
md.renderer.rules.th_close = (tokens, index) => (tokens[index - 1]?.content === '' ? '</td>\n' : '</th>\n');
md.renderer.rules.table_open = () =>
  '<div class="table" role="group" aria-label="Table" tabindex="0"><table>\n';
md.renderer.rules.table_close = () => '</table></div>\n';

md.renderer.rules.heading_open = (tokens, index, _options, env) => {
  const { headings, anchors } = env as PageEnv;
  const { tag } = tokens[index] as Token;
  const anchor = anchors(tokens[index + 1]?.content ?? '');
  headings.push({ level: Number(tag.slice(1)), text: plainText(tokens[index + 1]), anchor });
  return `<${tag} id="${escapeHtml(anchor)}">`;
};
md.renderer.rules.heading_close = (tokens, index, _options, env) => {
  const { tag } = tokens[index] as Token;
  const heading = (env as PageEnv).headings.at(-1);
  const link =
    heading && heading.level > 1
      ? ` <a class="anchor" href="#${escapeHtml(heading.anchor)}" aria-label="Link to ${escapeHtml(heading.text)}">#</a>`
      : '';
  return `${link}</${tag}>\n`;
};

/** The words of a heading or a paragraph. */
export function plainText(token: Token | undefined): string {
  return (token?.children ?? [])
    .map((child) => (child.type === 'softbreak' || child.type === 'hardbreak' ? ' ' : child.content))
    .join('');
}

const attributeOf = (token: Token | undefined, name: string): string => String(token?.attrGet(name) ?? '');

/** Links of the repository become links of the site. */
md.renderer.rules.link_open = (tokens, index, _options, env) => {
  const { file, links } = env as PageEnv;
  const href = attributeOf(tokens[index], 'href');
  const target = resolveLink(file, href);
  if (target.kind === 'none') return '<span>';
  if (target.kind === 'file') return `<a href="${escapeHtml(target.path)}">`;
  if (target.kind === 'elsewhere') return `<a href="${escapeHtml(href)}">`;
  links.push({ slug: target.slug, anchor: target.anchor });
  const anchor = target.anchor === '' ? '' : `#${target.anchor}`;
  return `<a href="${escapeHtml(pagePath(target.slug) + anchor)}">`;
};
md.renderer.rules.link_close = (tokens, index, _options, env) => {
  const opened = tokens.slice(0, index).findLast(({ type }) => type === 'link_open');
  const { kind } = resolveLink((env as PageEnv).file, attributeOf(opened, 'href'));
  return kind === 'none' ? '</span>' : '</a>';
};

const imagePath = (file: string, source: string): string => {
  const target = resolveLink(file, source);
  if (target.kind !== 'file') throw new Error(`${file} shows ${source}, which the site does not serve`);
  return target.path;
};
md.renderer.rules.image = (tokens, index, _options, env) => {
  const token = tokens[index] as Token;
  const source = imagePath((env as PageEnv).file, attributeOf(token, 'src'));
  return `<img src="${escapeHtml(source)}" alt="${escapeHtml(token.content)}" loading="lazy">`;
};
const withImagePaths = (html: string, { file }: PageEnv): string =>
  html.replace(
    /(<img src=")([^"]+)/g,
    (_whole, start: string, source: string) => start + imagePath(file, source),
  );
md.renderer.rules.html_block = (tokens, index, _options, env) =>
  withImagePaths(tokens[index]?.content ?? '', env as PageEnv);
md.renderer.rules.html_inline = (tokens, index, _options, env) =>
  withImagePaths(tokens[index]?.content ?? '', env as PageEnv);

/** The words of the first paragraph: what the page is about. */
export function firstParagraph(text: string): string {
  const tokens = md.parse(text, {});
  const index = tokens.findIndex(({ type, level }) => type === 'paragraph_open' && level === 0);
  return index < 0 ? '' : plainText(tokens[index + 1]);
}

/** The parts of a page between headings, as words, for the search. */
export function readSections(text: string): { heading: string; anchor: string; words: string }[] {
  const sections: { heading: string; anchor: string; words: string }[] = [];
  const anchors = createAnchors();
  const tokens = md.parse(text, {});
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const anchor = anchors(tokens[index + 1]?.content ?? '');
      sections.push({
        heading: plainText(tokens[index + 1]),
        anchor: token.tag === 'h1' ? '' : anchor,
        words: '',
      });
    } else if (token.type === 'inline' && tokens[index - 1]?.type !== 'heading_open') {
      const section = sections.at(-1);
      if (section) section.words += ` ${plainText(token)}`;
    } else if (token.type === 'fence') {
      const section = sections.at(-1);
      if (section) section.words += ` ${token.content}`;
    }
  }
  return sections;
}
