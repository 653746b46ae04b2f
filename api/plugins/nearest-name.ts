/** Words that other APIs use for the same thing, for names whose letters differ. */
const SYNONYMS = new Map<string, readonly string[]>(
  Object.entries({
    body: ['text_body'],
    content: ['text_body'],
    message: ['text_body'],
    plain: ['text_body'],
    recipient: ['to'],
    recipients: ['to'],
    title: ['subject', 'name'],
    files: ['attachments'],
    tags: ['labels'],
    scheduled_at: ['send_at'],
    page_size: ['limit'],
    per_page: ['limit'],
    page_token: ['cursor'],
    query: ['q'],
    search: ['q'],
    timeout: ['timeout_seconds'],
  }),
);

/** Finds the known name that the caller most likely meant: `text` → `text_body`, `replyTo` → `reply_to`. */
export function findNearestName(name: string, known: readonly string[]): string | undefined {
  const synonym = SYNONYMS.get(name.toLowerCase())?.find((candidate) => known.includes(candidate));
  if (synonym !== undefined) return synonym;
  const wanted = simplify(name);
  if (wanted === '') return undefined;
  const ranked = known
    .map((candidate) => ({ candidate, distance: measureDistance(wanted, simplify(candidate)) }))
    .filter(({ distance }) => distance !== undefined)
    .sort((a, b) => (a.distance ?? 0) - (b.distance ?? 0));
  return ranked[0]?.candidate;
}

/** Longer names are no misspellings, and comparing them would cost time. */
const MAX_COMPARED_LENGTH = 64;

function simplify(name: string): string {
  return name
    .slice(0, MAX_COMPARED_LENGTH)
    .toLowerCase()
    .replace(/[^\p{L}\d]/gu, '');
}

/** A smaller number is nearer; undefined if the names have nothing in common. */
function measureDistance(wanted: string, candidate: string): number | undefined {
  if (wanted === candidate) return 0;
  const shorter = Math.min(wanted.length, candidate.length);
  // `text` and `text_body`, `attachment` and `attachments`.
  if (shorter >= 3 && (candidate.startsWith(wanted) || wanted.startsWith(candidate)))
    return 1 + Math.abs(candidate.length - wanted.length) / 100;
  const edits = countEdits(wanted, candidate);
  if (edits <= Math.max(1, Math.floor(shorter / 3)) && shorter >= 2) return 2 + edits;
  return shorter >= 4 && (candidate.includes(wanted) || wanted.includes(candidate)) ? 10 : undefined;
}

/** Levenshtein distance. */
function countEdits(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const substitution = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
