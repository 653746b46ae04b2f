import { attributeOf, isOn, walkXml } from './office-xml.ts';
import type { TextCollector } from './text-collector.ts';
import { readZipParts } from './zip-parts.ts';

const PARTS = /^word\/(?:document|header|footer|footnotes|endnotes|comments)\d*\.xml$/;
/** The order of the text: the document, then what stands around it. */
const ORDER = ['document', 'footnotes', 'endnotes', 'comments', 'header', 'footer'];
const TITLES: Record<string, string> = {
  footnotes: 'Footnotes',
  endnotes: 'Endnotes',
  comments: 'Comments',
  header: 'Header',
  footer: 'Footer',
};

/** Reads a Word document (ECMA-376 part 1, section 17). Deleted and hidden text is left out. */
export function readDocx(archive: Uint8Array, text: TextCollector): void {
  const parts = readZipParts(archive, (name) => PARTS.test(name));
  const rank = (name: string) => ORDER.findIndex((kind) => name.startsWith(`word/${kind}`));
  for (const name of [...parts.keys()].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))) {
    const body = readBody(parts.get(name), text);
    if (body.trim() === '') continue;
    const title = TITLES[ORDER[rank(name)] ?? ''];
    text.endLine();
    text.add(title === undefined ? body : `\n${title}:\n${body}`);
  }
}

interface Run {
  text: string;
  isHidden: boolean;
}

function readBody(part: Buffer | undefined, text: TextCollector): string {
  const pieces: string[] = [];
  let run: Run | undefined;
  let isText = false;
  let cells = 0;
  /** Inside an alternative for older programs, which repeats the text. */
  let fallbacks = 0;
  let characters = 0;
  const add = (piece: string) => {
    if (fallbacks > 0) return;
    characters += piece.length;
    if (run) run.text += piece;
    else pieces.push(piece);
  };
  walkXml(
    part,
    {
      onOpen(name, attributes) {
        if (name === 'Fallback') fallbacks += 1;
        else if (name === 'r') run = { text: '', isHidden: false };
        else if (name === 't') isText = true;
        else if (name === 'tab' && run) add('\t');
        else if ((name === 'br' || name === 'cr') && run) add('\n');
        else if (name === 'noBreakHyphen') add('-');
        else if (name === 'vanish' && run && isOn(attributeOf(attributes, 'val'))) run.isHidden = true;
        else if (name === 'drawing' || name === 'pict') text.leaveOut('Images and drawings.');
        else if (name === 'tc') cells += 1;
      },
      onText(piece) {
        if (isText) add(piece);
      },
      onClose(name) {
        if (name === 'Fallback') fallbacks -= 1;
        else if (name === 't') isText = false;
        else if (name === 'r') {
          const ended = run;
          run = undefined;
          if (ended?.isHidden && ended.text.trim() !== '') text.leaveOut('Hidden text.');
          else if (ended) pieces.push(ended.text);
        } else if (name === 'p') add(cells > 0 ? ' ' : '\n');
        else if (name === 'tc') {
          cells -= 1;
          add('\t');
        } else if (name === 'tr' && cells === 0) add('\n');
      },
    },
    () => characters > MAX_BODY_CHARACTERS,
  );
  return pieces
    .join('')
    .replace(/ ?\t ?\n/g, '\n')
    .replace(/ \t/g, '\t');
}

/** More than the text holds, so that the collector notes that it was cut. */
const MAX_BODY_CHARACTERS = 2_000_000;
