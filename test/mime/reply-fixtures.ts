import { readFileSync } from 'node:fs';

/** A message as a client writes it, and its reply. Invented for these tests. */
export interface ReplyFixture {
  name: string;
  text: string | null;
  html: string | null;
  reply: string;
}

const DIRECTORY = new URL('../fixtures/replies/', import.meta.url);
const REPLY = 'Friday at noon works for us.\n\nShall I book the table?\n\nBest,\nAlice';
const HISTORY = ['Hello Alice,', '', 'does Friday suit you? We could also come on Monday.', '', 'Bob'];

interface Section {
  title: string;
  body: string;
}

function sectionsOf(file: string): Section[] {
  return readFileSync(new URL(file, DIRECTORY), 'utf8')
    .split(/^%%%% /m)
    .slice(1)
    .map((section) => {
      const titleEnd = section.indexOf('\n');
      return { title: section.slice(0, titleEnd), body: section.slice(titleEnd + 1).replace(/\n$/, '') };
    });
}

/** One reply with the attribution of each client. */
export function announcedReplies(file = 'announcements.txt'): ReplyFixture[] {
  return sectionsOf(file).map(({ title, body }) => {
    const quoted = title.endsWith(', quoted');
    const history = HISTORY.map((line) => (quoted ? `> ${line}`.trimEnd() : line)).join('\n');
    return { name: title, text: `${REPLY}\n\n${body}\n\n${history}\n`, html: null, reply: REPLY };
  });
}

/** Pairs of a message and, below `%%%% reply`, the expected reply. */
export function wholeMails(file: string, type: 'text' | 'html'): ReplyFixture[] {
  const sections = sectionsOf(file);
  return sections.flatMap(({ title, body }, at) => {
    const reply = sections[at + 1];
    if (title === 'reply' || reply?.title !== 'reply') return [];
    const mail = body.replaceAll('<CRLF>\n', '\r\n').replaceAll('<SP>', ' ');
    const bodies = type === 'text' ? { text: mail, html: null } : { text: null, html: mail };
    return [{ name: title, ...bodies, reply: reply.body.replaceAll('<SP>', ' ').trim() }];
  });
}

/** One reply with lines of the client below it, as text and as HTML. `<U+200B>` is that character. */
export function endedReplies(file: string): ReplyFixture[] {
  return sectionsOf(file).flatMap(({ title, body }) => {
    const end = body.replace(/<U\+([0-9A-F]{4})>/g, (_match, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
    const text = `${REPLY}\n\n${end}\n`;
    return [
      { name: title, text, html: null, reply: REPLY },
      { name: `${title}, as HTML`, text: null, html: toHtml(text), reply: REPLY },
    ];
  });
}

/** A line per `div`, as webmail writes. */
function toHtml(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return escaped
    .split('\n')
    .map((line) => `<div>${line === '' ? '<br>' : line}</div>`)
    .join('');
}
