/** What is read of a file, in UTF-16 code units. */
export const MAX_TEXT_CHARACTERS = 1_000_000;
/** Notes about what was left out. */
const MAX_NOTES = 20;

/** Collects the text of a file up to {@link MAX_TEXT_CHARACTERS}, and what was left out of it. */
export class TextCollector {
  readonly #pieces: string[] = [];
  readonly #notes = new Set<string>();
  #length = 0;
  #last = '\n';

  add(piece: string): void {
    const kept = piece.slice(0, MAX_TEXT_CHARACTERS - this.#length);
    if (kept.length < piece.length)
      this.leaveOut(`The text after ${MAX_TEXT_CHARACTERS.toLocaleString('en')} characters.`);
    if (kept === '') return;
    this.#pieces.push(kept);
    this.#length += kept.length;
    this.#last = kept.at(-1) ?? '';
  }

  /** Ends the line, unless the text is at the start of a line. */
  endLine(): void {
    if (this.#last !== '\n') this.add('\n');
  }

  /** Records what the text lacks, as a sentence. */
  leaveOut(note: string): void {
    if (this.#notes.size < MAX_NOTES) this.#notes.add(note);
  }

  get isFull(): boolean {
    return this.#length >= MAX_TEXT_CHARACTERS;
  }

  get leftOut(): string[] {
    return [...this.#notes];
  }

  toString(): string {
    return this.#pieces.join('');
  }
}
