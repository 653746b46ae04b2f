import type { ParsedFile, ParsedHeader } from '../parse-mail.ts';

/**
 * What a parser's process and its parent tell each other, in frames (`platform/frames.ts`). A mail is its bytes in
 * `raw` frames and an `end`; the answer is `header`, a `file`, its `fileBytes` and `fileEnd` for each file, `text`,
 * `html` and `extracted` in pieces of UTF-8, and `done`.
 */
export const FRAME = {
  raw: 'r',
  end: 'e',
  header: 'h',
  file: 'f',
  fileBytes: 'b',
  fileEnd: 'g',
  text: 't',
  html: 'm',
  extracted: 'x',
  done: 'd',
} as const;

export type HeaderFrame = ParsedHeader;
export type FileFrame = ParsedFile;
export interface DoneFrame {
  parseError: string | null;
  hasText: boolean;
  hasHtml: boolean;
}
