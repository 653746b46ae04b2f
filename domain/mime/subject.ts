/**
 * Reply and forward prefixes of subjects in many languages, and the base subject without them (like RFC 5256 section
 * 2.1, which recognizes only English).
 */

const REPLY_PREFIXES = [
  're',
  'r',
  'res',
  'ref',
  'rif',
  'réf',
  'rép',
  'rep', // English, Italian, Portuguese, French
  'aw',
  'antw',
  'antwort',
  'betr',
  'ant', // German, Dutch
  'sv',
  'svar',
  'vs',
  'odp',
  'odg',
  'vá',
  'atb',
  'ats',
  'bls',
  'ynt',
  'yanıt', // Nordic, Slavic, Hungarian, Welsh, Baltic, Indonesian, Turkish
  'απ',
  'σχετ',
  'отв',
  'ответ',
  'на',
  'השב',
  'רד',
  'رد', // Greek, Russian, Bulgarian, Hebrew, Arabic
  '回复',
  '回覆',
  '答复',
  '答覆',
  '返信',
  '답장',
  '회신',
  'ตอบ', // Chinese, Japanese, Korean, Thai
];
const FORWARD_PREFIXES = [
  'fwd',
  'fw',
  'tr',
  'i',
  'enc',
  'rv',
  'wg',
  'doorst', // English, French, Italian, Portuguese, Spanish, German, Dutch
  'vb',
  'vl',
  'pd',
  'prv',
  'továbbítás',
  'trs',
  'ilt',
  'İlt',
  'πρθ', // Nordic, Polish, Czech, Hungarian, Indonesian, Turkish, Greek
  'пересл',
  'пер',
  'הועבר',
  'إعادة توجيه',
  '转发',
  '轉寄',
  '轉發',
  '転送',
  '전달',
];

const alternatives = (prefixes: string[]) => [...prefixes].sort((a, b) => b.length - a.length).join('|');
/** A prefix may be numbered (`Re[2]:`, `Re(3):`, `Re^4:`) and end with a full-width colon. White space is already collapsed. */
const PREFIX = new RegExp(
  `(?:(?<reply>${alternatives(REPLY_PREFIXES)})|(?:${alternatives(FORWARD_PREFIXES)})) ?(?:[[(^*] ?\\d{1,3} ?[\\])]?)? ?[:：] ?`,
  'iuy',
);
/** `[list-name] ` remains in the subject, but prefixes after it are recognized. */
const LIST_TAG = /\[[^[\]]{1,100}\] ?/y;

interface SubjectAnalysis {
  base: string;
  /** The outermost prefix; null if there is none. */
  prefix: 'reply' | 'forward' | null;
}

function analyzeSubject(subject: string): SubjectAnalysis {
  const text = subject.normalize('NFC').replace(/\s+/gu, ' ').trim();
  const tags: string[] = [];
  let prefix: SubjectAnalysis['prefix'] = null;
  let position = 0;
  let tagsTo = 0;
  for (;;) {
    PREFIX.lastIndex = position;
    const found = PREFIX.exec(text);
    if (found) {
      prefix ??= found.groups?.reply === undefined ? 'forward' : 'reply';
      // Tags are recognized only if a prefix follows. Directly before the text, they are part of it.
      tags.push(...readTags(text, tagsTo, position));
      position = PREFIX.lastIndex;
      tagsTo = position;
      continue;
    }
    LIST_TAG.lastIndex = position;
    if (!LIST_TAG.test(text)) break;
    position = LIST_TAG.lastIndex;
  }
  const rest = text.slice(tagsTo).replace(/(?: ?\(fwd\))+$/i, '');
  const kept = [...new Set(tags)].filter((tag) => !rest.startsWith(tag));
  return { base: [...kept, rest].join(' ').trim(), prefix };
}

function readTags(text: string, from: number, to: number): string[] {
  return [...text.slice(from, to).matchAll(/\[[^[\]]+\]/g)].map(([tag]) => tag);
}

/** Removes reply and forward prefixes and collapses white space. Keeps the case. */
export function getBaseSubject(subject: string): string {
  return analyzeSubject(subject).base;
}

/** Whether the subject has a reply prefix. An outer forward prefix takes precedence. */
export function isReplySubject(subject: string): boolean {
  return analyzeSubject(subject).prefix === 'reply';
}

/** Replaces all prefixes with a single `Re:`, and truncates the result to {@link MAX_SUBJECT_CHARACTERS}. */
export function toReplySubject(subject: string): string {
  return truncateSubject(`Re: ${getBaseSubject(subject)}`.trimEnd());
}

/** Replaces all prefixes with a single `Fwd:`, and truncates the result to {@link MAX_SUBJECT_CHARACTERS}. */
export function toForwardSubject(subject: string): string {
  return truncateSubject(`Fwd: ${getBaseSubject(subject)}`.trimEnd());
}

/** RFC 5322 section 2.1.1; the API limits subjects to the same length. */
const MAX_SUBJECT_CHARACTERS = 998;

function truncateSubject(subject: string): string {
  // Truncation may split a surrogate pair.
  return subject.slice(0, MAX_SUBJECT_CHARACTERS).replace(/[\ud800-\udbff]$/, '');
}
