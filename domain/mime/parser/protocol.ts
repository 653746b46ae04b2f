import type { FoundInvite } from '../invites/find-invites.ts';
import type { MessageFindings } from '../message-findings.ts';
import type { MessageText } from '../message-text.ts';
import type { ParsedFile, ParsedHeader } from '../parse-mail.ts';

/**
 * Protocol between the parser pool and its child processes (`platform/frames.ts`). The pool sends a message as `raw`
 * frames and an `end`. The child sends `header`; `file`, `fileBytes` and `fileEnd` for each file; `text`, `html` and
 * `extracted` as chunks of UTF-8; and `done`.
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
export interface DoneFrame extends Omit<MessageText, 'extractedText'>, MessageFindings {
  invites: FoundInvite[];
  parseError: string | null;
  hasText: boolean;
  hasHtml: boolean;
  isAutomatic: boolean;
}
