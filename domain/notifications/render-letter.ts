import type { Letter } from './templates.ts';

export interface RenderedLetter {
  /** One line. */
  subject: string;
  text: string;
  html: string;
}

const MAX_SUBJECT_CHARACTERS = 200;

/** The same letter for those who read text and those who read HTML. Nothing within it is taken for markup. */
export function renderLetter({ subject, body }: Letter): RenderedLetter {
  const line = oneLine(subject).slice(0, MAX_SUBJECT_CHARACTERS);
  return {
    subject: line,
    text: `${body.map(blockAsText).join('\n\n')}\n\n-- \n${FOOTER}\n`,
    html: [
      '<!doctype html>',
      `<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(line)}</title></head>`,
      '<body style="font-family: sans-serif; line-height: 1.5; max-width: 40em">',
      ...body.map(blockAsHtml),
      `<p style="color: #666">${escapeHtml(FOOTER)}</p>`,
      '</body></html>',
      '',
    ].join('\n'),
  };
}

const FOOTER = 'You get this mail as an owner of the organization. Nobody reads answers to it.';

type Block = Letter['body'][number];

function blockAsText(block: Block): string {
  if (typeof block === 'string') return visible(block);
  return block.map(([name, value]) => `${oneLine(name)}: ${oneLine(value)}`).join('\n');
}

function blockAsHtml(block: Block): string {
  if (typeof block === 'string') return `<p>${escapeHtml(visible(block))}</p>`;
  const rows = block.map(
    ([name, value]) =>
      `<tr><th align="left" style="padding-right: 1em">${escapeHtml(oneLine(name))}</th><td>${escapeHtml(oneLine(value))}</td></tr>`,
  );
  return `<table>${rows.join('')}</table>`;
}

function oneLine(text: string): string {
  return visible(text).replace(/\s+/gu, ' ').trim();
}

/** Without control characters and those that turn text around (a link that reads as another). */
function visible(text: string): string {
  return text.replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f]/gu, '').replace(/(?!\n)\p{Cc}/gu, ' ');
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
