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
export const escapeHtml = (value: unknown): string =>
  String(value)
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
    .replace(BIDI_CONTROLS, (character) => `[U+${character.charCodeAt(0).toString(16).toUpperCase()}]`);
