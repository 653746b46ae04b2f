import { Parser } from 'htmlparser2';
import { UnreadableFileError } from './unreadable-file.ts';

export interface XmlEvents {
  /** Names are without their namespace prefix. */
  onOpen?(name: string, attributes: Record<string, string>): void;
  onText?(text: string): void;
  onClose?(name: string): void;
}

const CHUNK_CHARACTERS = 64 * 1024;
/** Deeper documents do not occur, and each level costs memory. */
const MAX_DEPTH = 10_000;

/**
 * Walks through a part of an Office document (ECMA-376). Entities beyond the five of XML are not expanded, and nothing is
 * loaded.
 *
 * @param isDone ends the walk early.
 */
export function walkXml(
  part: Buffer | undefined,
  events: XmlEvents,
  isDone: () => boolean = () => false,
): void {
  if (!part) return;
  let depth = 0;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1;
        events.onOpen?.(localName(name), attributes);
      },
      ontext: (text) => events.onText?.(text),
      onclosetag(name) {
        depth -= 1;
        events.onClose?.(localName(name));
      },
    },
    { xmlMode: true, decodeEntities: true },
  );
  const xml = decodeXml(part);
  for (let at = 0; at < xml.length && !isDone(); at += CHUNK_CHARACTERS) {
    parser.write(xml.slice(at, at + CHUNK_CHARACTERS));
    if (depth > MAX_DEPTH) throw new UnreadableFileError('Its elements are nested too deeply.');
  }
  parser.end();
}

/** XML 1.0 section 4.3.3: UTF-16 has a byte order mark, and everything else here is UTF-8. */
function decodeXml(part: Buffer): string {
  const mark = part.subarray(0, 2).toString('hex');
  const encoding = mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(part);
}

export const localName = (name: string): string => name.slice(name.indexOf(':') + 1);

/** The value of an attribute, regardless of its prefix. */
export function attributeOf(attributes: Record<string, string>, local: string): string | undefined {
  const name = Object.keys(attributes).find((each) => localName(each) === local);
  return name === undefined ? undefined : attributes[name];
}

/** Whether a switch such as `w:vanish` is on: it is unless its value says otherwise. */
export function isOn(value: string | undefined): boolean {
  return value === undefined || !/^(?:0|false|off)$/i.test(value);
}

export interface Relation {
  /** The name of the part, from the root of the archive. */
  target: string;
  /** The last word of the type, such as `notesSlide`. */
  kind: string;
}

/** The relations of a part, by id. */
export function readRelations(parts: ReadonlyMap<string, Buffer>, partName: string): Map<string, Relation> {
  const at = partName.lastIndexOf('/') + 1;
  const folder = partName.slice(0, at);
  const relations = new Map<string, Relation>();
  walkXml(parts.get(`${folder}_rels/${partName.slice(at)}.rels`), {
    onOpen(name, { Id: id, Target: target, Type: type = '' }) {
      if (name !== 'Relationship' || id === undefined || target === undefined) return;
      const path = new URL(target, `zip:///${folder}`).pathname.slice(1);
      relations.set(id, { target: path, kind: type.slice(type.lastIndexOf('/') + 1) });
    },
  });
  return relations;
}
