import MiniSearch, { type Options } from 'minisearch';

/** A part of a page that the search finds. */
export interface SearchEntry {
  /** With its anchor. */
  url: string;
  page: string;
  heading: string;
  /** Ids and addresses: `messages.send POST /api/v1/…`. */
  names: string;
  words: string;
  /** Of its score: how likely someone looks for it. */
  weight: number;
}

const MAX_EXCERPT = 160;

/** The browser reads the options from the index, so both sides split and weigh words alike. */
export const SEARCH_OPTIONS = {
  idField: 'url',
  fields: ['heading', 'page', 'names', 'words'],
  storeFields: ['page', 'heading', 'excerpt', 'weight'],
  searchOptions: {
    prefix: true,
    fuzzy: 0.25,
    combineWith: 'AND',
    boost: { heading: 6, names: 4, page: 3, words: 1 },
  },
} satisfies Options;

/** The index of the search, as the browser loads it. */
export function buildSearchIndex(entries: readonly SearchEntry[]): string {
  const index = new MiniSearch(SEARCH_OPTIONS);
  index.addAll(
    entries.map((entry) => {
      const words = entry.words.replace(/\s+/g, ' ').trim();
      return { ...entry, words, excerpt: shorten(words) };
    }),
  );
  return JSON.stringify({ options: SEARCH_OPTIONS, index: index.toJSON() });
}

const shorten = (words: string): string =>
  words.length <= MAX_EXCERPT ? words : `${words.slice(0, words.lastIndexOf(' ', MAX_EXCERPT))} …`;
