import { pagePath } from '../links.ts';
import type { SearchEntry } from '../search.ts';
import { type DescribedGroup, describeReference } from './describe.ts';
import { type OpenApi, readGroups } from './openapi.ts';
import { printGroupHtml, printGroupMarkdown } from './print.ts';

/** A page of the reference, in both representations. */
export interface ReferencePage {
  slug: string;
  title: string;
  description: string;
  html: string;
  markdown: string;
  children: { anchor: string; label: string }[];
  entries: SearchEntry[];
  /** For staff of the service alone. */
  isForStaff: boolean;
}

/** One page for each subject of the OpenAPI document. */
export function buildReference(document: OpenApi): ReferencePage[] {
  const groups = describeReference(document, readGroups(document));
  const objects = new Map(
    groups.flatMap((group) => group.objects.map(({ name }) => [name, group.slug] as const)),
  );
  return groups.map((group) => ({
    slug: group.slug,
    title: group.name,
    description: group.description,
    html: printGroupHtml(group, objects),
    markdown: printGroupMarkdown(group),
    children: group.calls.map(({ id, title }) => ({ anchor: id, label: title })),
    entries: entriesOf(group),
    isForStaff: group.name === 'Admin',
  }));
}

function entriesOf({ slug, name, calls, objects }: DescribedGroup): SearchEntry[] {
  const weight = name === 'Admin' ? 0.5 : 1;
  const page = `Reference: ${name}`;
  return [
    ...calls.map(({ id, title, method, path, description, fields }) => ({
      url: `${pagePath(slug)}#${id}`,
      page,
      heading: title,
      names: `${id} ${method} ${path}`,
      words: `${description} ${fields.flatMap((part) => part.fields.map((field) => field.name)).join(' ')}`,
      weight,
    })),
    ...objects.map((object) => ({
      url: `${pagePath(slug)}#${object.name}`,
      page,
      heading: object.name,
      names: object.name,
      words: `${object.description} ${object.fields.map((field) => field.name).join(' ')}`,
      weight: weight * 0.8,
    })),
  ];
}
