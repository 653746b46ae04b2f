/** A part of a list: what is in quotes or angle brackets may contain separators. Pasted lists have one address in each line. */
const PART = /(?:"(?:[^"\\]|\\.)*"|<[^>]*>|[^,;\r\n])+/g;

/** The addresses of a field that people fill: `Ada <ada@people.example>, bob@people.example`. */
export const splitAddresses = (text: string): string[] =>
  (text.match(PART) ?? []).map((part) => part.trim()).filter((part) => part !== '');
