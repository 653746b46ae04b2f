import type { Line } from './lines.ts';

const MAX_CHARACTERS = 300;
/** Lines that only issue trackers, review tools and forums write. They stand above a comment, quoted or not. */
const STRONG = [
  // Bugzilla
  /^-{2,} ?Comment #\d{1,9} from .{2,250}-{2,}$/i,
  // Redmine
  /^Issue #\d{1,9} has been (?:updated|reported|created) by [^.!?]{2,80}\.$/i,
  // Gerrit
  /^[^.!?:]{2,60} has (?:posted comments on|uploaded|submitted|abandoned|restored) this change\. ?(?:\( ?https?:\S{1,200} ?\))?$/i,
  // Forums
  /^Posted by [^\s.!?:]{1,40}(?: \p{Lu}[^\s.!?:]{0,30}){0,3} on \d{1,4}[./-]\d{1,2}[./-]\d{1,4}$/u,
];
/** Lines that people may also write, so quoted lines must follow. */
const WEAK = [
  /^[^.!?:]{2,60} (?:commented|replied|added a comment)[:.]$/i,
  /^[^.!?:]{2,60} commented on (?:a discussion on |an issue |pull request |merge request )?\S{2,120}:$/i,
  /^[^.!?:]{2,60} started a new discussion on \S{2,120}:$/i,
  /^[^!?:]{2,160} changed:$/i,
  /^Comment ?\(by [^()]{1,60}\):$/i,
];
/** Jira puts a link to the comment above the author's line, or a rule below it. */
const COMMENTED = /^[^.!?:]{2,60} (?:commented on|updated|created) [A-Z][A-Z0-9_]{1,19}-\d{1,9}:$/;
const LINK_TO_COMMENT = /^\[ ?https?:[^\s\]]{1,300} ?\]$/;
const RULE = /^[-=_]{3,}$/;

/** Recognizes the line above the comment in mail of trackers and forums; `weak` if quoted lines must follow. */
export function findTrackerLine(lines: Line[], at: number): { lines: number; weak: boolean } | null {
  const text = lines[at]?.text ?? '';
  if (text.length > MAX_CHARACTERS) return null;
  if (STRONG.some((pattern) => pattern.test(text))) return { lines: 1, weak: false };
  if (LINK_TO_COMMENT.test(text)) {
    const below = lines[at + 1]?.kind === 'blank' ? at + 2 : at + 1;
    return COMMENTED.test(lines[below]?.text ?? '') ? { lines: below + 1 - at, weak: false } : null;
  }
  if (COMMENTED.test(text) && RULE.test(lines[at + 1]?.text ?? '')) return { lines: 2, weak: false };
  return WEAK.some((pattern) => pattern.test(text)) ? { lines: 1, weak: true } : null;
}
