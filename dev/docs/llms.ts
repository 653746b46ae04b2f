import type { Guide } from './guides.ts';
import { BASE_URL, markdownPath } from './links.ts';
import type { ReferencePage } from './reference/build.ts';

const INTRODUCTION = `# Agent Email Service

> Email inboxes for software agents: an HTTP API, MCP tools, signed webhooks and live streams to create inboxes, send, receive, wait for answers and read mail.

The API is at ${BASE_URL}/api/v1, its OpenAPI document at ${BASE_URL}/openapi.json, and the part that agents need at ${BASE_URL}/openapi/agent.json. MCP hosts connect to ${BASE_URL}/mcp. Every error has a stable \`code\`, and a \`fix\` that says what to do next. Each page is also HTML: leave out \`.md\`.
`;

interface Link {
  title: string;
  slug: string;
  description: string;
}

const list = (links: readonly Link[]): string =>
  links
    .map(({ title, slug, description }) => `- [${title}](${BASE_URL}${markdownPath(slug)}): ${description}`)
    .join('\n');

/** The list of pages for language models (llmstxt.org). What only operators and contributors need is optional. */
export function buildLlmsTxt(guides: readonly Guide[], reference: readonly ReferencePage[]): string {
  const users = guides.filter(({ audience }) => audience === 'users');
  const groups = [...new Set(users.map(({ group }) => group))];
  const sections = groups.map(
    (group) => `## ${group}\n\n${list(users.filter((guide) => guide.group === group))}\n`,
  );
  const optional = [
    ...guides.filter(({ audience }) => audience !== 'users'),
    ...reference.filter(({ isForStaff }) => isForStaff),
  ];
  return [
    INTRODUCTION,
    ...sections,
    `## Reference\n\n${list(reference.filter(({ isForStaff }) => !isForStaff))}\n`,
    `## Optional\n\n${list(optional)}\n`,
  ].join('\n');
}

/** The pages of the list that are not optional, in one file. */
export function buildLlmsFullTxt(guides: readonly Guide[], reference: readonly ReferencePage[]): string {
  const pages = [
    ...guides.filter(({ audience }) => audience === 'users'),
    ...reference.filter(({ isForStaff }) => !isForStaff),
  ];
  return [
    INTRODUCTION,
    ...pages.map(({ slug, markdown }) => `<!-- ${BASE_URL}${markdownPath(slug)} -->\n\n${markdown}`),
  ].join('\n');
}
