/** A link to a page of this service. */
interface PageLink {
  label: string;
  /** With query, such as `/verify-email?token=…`. The configured public URL precedes it. */
  path: string;
}

/** Content of an email, rendered as text and HTML. */
export interface EmailContent {
  subject: string;
  /** A string is a paragraph, a list of pairs a table. */
  body: (string | [name: string, value: string][] | PageLink)[];
  /** Why the recipient gets the email. Default: as an owner of the organization. */
  footer?: string;
}

export interface RenderedEmail {
  /** A single line. */
  subject: string;
  text: string;
  html: string;
}

const MAX_SUBJECT_CHARACTERS = 200;

/**
 * Renders an email as plain text and HTML. All content is escaped.
 *
 * @param publicUrl the public address of the service (`PUBLIC_URL`). Links use it, never the Host of a request.
 */
export function renderEmail(
  { subject, body, footer = OWNER_FOOTER }: EmailContent,
  publicUrl: string,
): RenderedEmail {
  const line = toSingleLine(subject).slice(0, MAX_SUBJECT_CHARACTERS);
  return {
    subject: line,
    text: `${body.map((block) => renderTextBlock(block, publicUrl)).join('\n\n')}\n\n-- \n${footer}\n`,
    html: [
      '<!doctype html>',
      `<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(line)}</title></head>`,
      '<body style="font-family: sans-serif; line-height: 1.5; max-width: 40em">',
      ...body.map((block) => renderHtmlBlock(block, publicUrl)),
      `<p style="color: #666">${escapeHtml(footer)}</p>`,
      '</body></html>',
      '',
    ].join('\n'),
  };
}

const OWNER_FOOTER =
  'You received this email because you are an owner of the organization. Replies to this address are not monitored.';

type Block = EmailContent['body'][number];

function renderTextBlock(block: Block, publicUrl: string): string {
  if (typeof block === 'string') return stripControlCharacters(block);
  if ('path' in block) return `${block.label}:\n${new URL(block.path, publicUrl)}`;
  return block.map(([name, value]) => `${toSingleLine(name)}: ${toSingleLine(value)}`).join('\n');
}

function renderHtmlBlock(block: Block, publicUrl: string): string {
  if (typeof block === 'string') return `<p>${escapeHtml(stripControlCharacters(block))}</p>`;
  if ('path' in block)
    return `<p><a href="${escapeHtml(String(new URL(block.path, publicUrl)))}">${escapeHtml(block.label)}</a></p>`;
  const rows = block.map(
    ([name, value]) =>
      `<tr><th align="left" style="padding-right: 1em">${escapeHtml(toSingleLine(name))}</th><td>${escapeHtml(toSingleLine(value))}</td></tr>`,
  );
  return `<table>${rows.join('')}</table>`;
}

function toSingleLine(text: string): string {
  return stripControlCharacters(text).replace(/\s+/gu, ' ').trim();
}

/** Removes control characters and bidirectional overrides, which can make a link look like another. */
function stripControlCharacters(text: string): string {
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
