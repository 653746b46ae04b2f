import { attributeOf, isOn, type Relation, readRelations, walkXml } from './office-xml.ts';
import type { TextCollector } from './text-collector.ts';
import { readZipParts } from './zip-parts.ts';

const PARTS =
  /^ppt\/(?:presentation\.xml|(?:slides|notesSlides)\/[^/]+\.xml|(?:slides\/)?_rels\/[^/]+\.rels)$/;
const PRESENTATION = 'ppt/presentation.xml';

/** Reads a presentation (ECMA-376 part 1, section 19): the slides in their order, each with its notes. */
export function readPptx(archive: Uint8Array, text: TextCollector): void {
  const parts = readZipParts(archive, (name) => PARTS.test(name));
  let number = 0;
  for (const slide of listSlides(parts)) {
    number += 1;
    if (text.isFull) return;
    const { body, isHidden, hasPictures } = readShapes(parts.get(slide));
    if (isHidden) {
      text.leaveOut(`Slide ${number}, which is hidden.`);
      continue;
    }
    if (hasPictures) text.leaveOut('Images and charts.');
    text.endLine();
    text.add(`Slide ${number}:\n${body}`);
    const [notes] = [...readRelations(parts, slide).values()].filter(({ kind }) => kind === 'notesSlide');
    const noted = notes ? readShapes(parts.get(notes.target)).body.trim() : '';
    if (noted !== '') text.add(`Notes: ${noted}\n`);
    text.add('\n');
  }
}

function listSlides(parts: ReadonlyMap<string, Buffer>): string[] {
  const relations = readRelations(parts, PRESENTATION);
  const slides: (Relation | undefined)[] = [];
  walkXml(parts.get(PRESENTATION), {
    onOpen(name, attributes) {
      if (name === 'sldId') slides.push(relations.get(attributes['r:id'] ?? ''));
    },
  });
  return slides.flatMap((slide) => (slide && parts.has(slide.target) ? [slide.target] : []));
}

interface Shapes {
  body: string;
  isHidden: boolean;
  hasPictures: boolean;
}

function readShapes(part: Buffer | undefined): Shapes {
  const pieces: string[] = [];
  const shapes = { isHidden: false, hasPictures: false };
  let isText = false;
  let cells = 0;
  /** The number of the slide, on the slide and its notes. */
  let isField = false;
  walkXml(part, {
    onOpen(name, attributes) {
      if (name === 'sld') shapes.isHidden = !isOn(attributeOf(attributes, 'show'));
      else if (name === 'pic' || name === 'graphicFrame' || name === 'chart')
        shapes.hasPictures ||= name !== 'graphicFrame';
      else if (name === 't') isText = true;
      else if (name === 'fld') isField = attributes.type === 'slidenum';
      else if (name === 'br') pieces.push('\n');
      else if (name === 'tc') cells += 1;
    },
    onText(piece) {
      if (isText && !isField) pieces.push(piece);
    },
    onClose(name) {
      if (name === 't') isText = false;
      else if (name === 'fld') isField = false;
      else if (name === 'p') pieces.push(cells > 0 ? ' ' : '\n');
      else if (name === 'tc') {
        cells -= 1;
        pieces.push('\t');
      } else if (name === 'tr') pieces.push('\n');
    },
  });
  return {
    ...shapes,
    body: pieces
      .join('')
      .replace(/ ?\t ?\n/g, '\n')
      .replace(/ \t/g, '\t')
      .replace(/\n\n+/g, '\n'),
  };
}
