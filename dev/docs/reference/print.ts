import { BASE_URL, markdownPath, pagePath } from '../links.ts';
import { escapeHtml, renderCode, renderMarkdown, renderTabs } from '../markdown.ts';
import type { DescribedCall, DescribedGroup, DescribedObject, Sample } from './describe.ts';
import type { Field } from './fields.ts';

/** Where each object of the reference is described. */
export type ObjectPages = ReadonlyMap<string, string>;

const ERRORS = 'errors';

export function printGroupHtml(group: DescribedGroup, objects: ObjectPages): string {
  const { name, description, calls } = group;
  const listed = calls
    .map(({ id, method, path, title, isWebhook }) =>
      isWebhook
        ? `<li><a href="#${id}"><code>${escapeHtml(path)}</code></a></li>`
        : `<li><a href="#${id}"><span class="method">${method}</span> <code>${escapeHtml(path)}</code></a> <span>${escapeHtml(title)}</span></li>`,
    )
    .join('\n');
  const sections = calls.map((call) => printCallHtml(call, objects));
  const described = group.objects.map((object) => printObjectHtml(object, objects));
  return `<h1>${escapeHtml(name)}</h1>
<p>${escapeHtml(description)}</p>
<ul class="operations">${listed}</ul>
${sections.join('\n')}
${described.length > 0 ? `<h2 id="objects">Objects</h2>\n${described.join('\n')}` : ''}`;
}

function printCallHtml(call: DescribedCall, objects: ObjectPages): string {
  const { id, title, method, path, description, facts, fields, isWebhook } = call;
  const address = isWebhook
    ? ''
    : `<p class="call"><span class="method">${method}</span> <code>${escapeHtml(path)}</code></p>`;
  return `<section class="operation" id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${escapeHtml(title)} <a class="anchor" href="#${id}" aria-label="Link to ${escapeHtml(title)}">#</a></h2>
${address}
<div class="description">
${inlineMarkdown(description)}
${facts.length > 0 ? `<ul class="facts">${facts.map((fact) => `<li>${inlineMarkdown(fact, true)}</li>`).join('')}</ul>` : ''}
${fields.map((part) => `<h3>${part.title}</h3>\n${printFieldsHtml(part.fields, objects)}`).join('\n')}
${printAnswersHtml(call, objects)}
</div>
<div class="samples">${call.samples.map((sample, index) => printSampleHtml(sample, `${id}-${index}`)).join('\n')}</div>
</section>`;
}

function printAnswersHtml({ answers, errors, isWebhook }: DescribedCall, objects: ObjectPages): string {
  const items = answers.map(({ status, description, type, typeName }) => {
    const shown = type === '' ? '' : ` ${typeHtml(type, typeName, objects)}`;
    return `<div><dt><code>${status}</code>${shown}</dt><dd>${escapeHtml(description)}</dd></div>`;
  });
  const rows = errors.map(
    ({ status, description, codes }) =>
      `<div><dt><code>${status}</code></dt><dd>${escapeHtml(description)}<br>${codes.map((code) => `<a href="${pagePath(ERRORS)}#${code}"><code>${code}</code></a>`).join(' ')}</dd></div>`,
  );
  const title = isWebhook ? 'Your answer' : 'Answers';
  const details =
    rows.length > 0
      ? `<details class="errors"><summary>Errors, and what to do</summary><dl class="fields">${rows.join('')}</dl></details>`
      : '';
  return `<h3>${title}</h3>\n<dl class="fields">${items.join('')}</dl>\n${details}`;
}

const printFieldsHtml = (fields: readonly Field[], objects: ObjectPages): string =>
  `<dl class="fields">${fields.map((field) => printFieldHtml(field, objects)).join('')}</dl>`;

function printFieldHtml(
  { name, type, typeName, isRequired, description }: Field,
  objects: ObjectPages,
): string {
  const required = isRequired ? ' <span class="required">required</span>' : '';
  const text = description === '' ? '' : inlineMarkdown(description, true);
  return `<div><dt><code>${escapeHtml(name)}</code> ${typeHtml(type, typeName, objects)}${required}</dt><dd>${text}</dd></div>`;
}

function typeHtml(type: string, typeName: string | undefined, objects: ObjectPages): string {
  const slug = typeName === undefined ? undefined : objects.get(typeName);
  const plain = escapeHtml(type.replaceAll('`', ''));
  if (typeName === undefined || slug === undefined) return `<span class="type">${plain}</span>`;
  return `<span class="type">${plain.replace(typeName, `<a href="${pagePath(slug)}#${typeName}">${typeName}</a>`)}</span>`;
}

function printObjectHtml({ name, description, fields }: DescribedObject, objects: ObjectPages): string {
  return `<section class="object" id="${name}" aria-labelledby="${name}-title"><h3 id="${name}-title">${name} <a class="anchor" href="#${name}" aria-label="Link to ${name}">#</a></h3>
${inlineMarkdown(description)}
${printFieldsHtml(fields, objects)}</section>`;
}

function printSampleHtml({ title, blocks }: Sample, id: string): string {
  const [only] = blocks;
  const code = blocks.length > 1 || !only ? renderTabs(blocks, id) : renderCode(only.code, only.language);
  return `<div class="sample"><h3>${escapeHtml(title)}</h3>${code}</div>`;
}

/** Descriptions of the OpenAPI document are Markdown. */
function inlineMarkdown(text: string, isPhrase = false): string {
  if (text === '') return '';
  const { html } = renderMarkdown(text.replaceAll('<', '&lt;'), 'docs/README.md');
  return isPhrase ? html.trim().replace(/^<p>([\s\S]*)<\/p>$/, '$1') : html;
}

/** The same page for agents. */
export function printGroupMarkdown({ name, description, calls, objects }: DescribedGroup): string {
  const parts = [
    `# ${name}\n\n${description}\n`,
    ...calls.map(printCallMarkdown),
    ...(objects.length > 0 ? ['## Objects\n'] : []),
    ...objects.map(
      (object) =>
        `### ${object.name}\n\n${object.description ? `${object.description}\n\n` : ''}${fieldTable(object.fields)}`,
    ),
  ];
  return parts.join('\n');
}

function printCallMarkdown({
  title,
  method,
  path,
  isWebhook,
  description,
  facts,
  fields,
  answers,
  errors,
  samples,
}: DescribedCall): string {
  const answerList = answers.map(
    ({ status, type, description: text }) => `- \`${status}\`${type === '' ? '' : ` ${type}`}: ${text}`,
  );
  const errorList = errors.map(
    ({ status, codes }) => `${status} (${codes.map((code) => `\`${code}\``).join(', ')})`,
  );
  return [
    `## ${title}\n`,
    isWebhook ? '' : `\`${method} ${path}\`\n`,
    facts.length > 0 ? `${facts.join('. ')}.\n` : '',
    description === '' ? '' : `${description}\n`,
    ...fields.map((part) => `${part.title}:\n\n${fieldTable(part.fields)}`),
    `${isWebhook ? 'Your answer' : 'Answers'}:\n\n${answerList.join('\n')}\n`,
    errorList.length > 0
      ? `Errors ([what they mean](${BASE_URL}${markdownPath(ERRORS)})): ${errorList.join('; ')}.\n`
      : '',
    ...samples.map(
      (sample) =>
        `${sample.title}:\n\n${sample.blocks.map(({ language, code }) => `\`\`\`${language}\n${code}\`\`\`\n`).join('\n')}`,
    ),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

function fieldTable(fields: readonly Field[]): string {
  const rows = fields.map(
    ({ name, type, isRequired, description }) =>
      `| \`${name}\` | ${cell(type)}${isRequired ? ', required' : ''} | ${cell(description)} |`,
  );
  return `| field | type | description |\n|---|---|---|\n${rows.join('\n')}\n`;
}
