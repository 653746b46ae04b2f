import { join } from 'node:path';
import { Eta } from 'eta';

/** Renders the templates of a folder. Values are escaped; `templates/layout.eta` surrounds each page. */
export interface Views {
  /** @param name a file of `templates/` without its extension. */
  render(name: string, data: object): string;
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
/** They change the order of the text around them, so that a name could rewrite the line that it is in (Unicode TR36). */
const BIDI_CONTROLS = /[\u202A-\u202E\u2066-\u2069]/g;

/** Escapes a value for text and quoted attributes. Characters that reorder text are shown by their names. */
export const escapeText = (value: unknown): string =>
  String(value)
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
    .replace(BIDI_CONTROLS, (character) => `[U+${character.charCodeAt(0).toString(16).toUpperCase()}]`);

export function createViews(): Views {
  const eta = new Eta({
    views: join(import.meta.dirname, 'templates'),
    autoEscape: true,
    autoTrim: false,
    cache: true,
    escapeFunction: escapeText,
  });
  return { render: (name, data) => eta.render(`./${name}`, data) };
}
