/**
 * Reply and forward marks in subjects, in the languages mail programs write them in, and the base subject below them
 * (after RFC 5256 section 2.1, which knows English alone).
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

const alternatives = (marks: string[]) => [...marks].sort((a, b) => b.length - a.length).join('|');
/** A mark may be numbered (`Re[2]:`, `Re(3):`, `Re^4:`) and end in a full-width colon. Subjects have single spaces here. */
const PREFIX = new RegExp(
  `(?:(?<reply>${alternatives(REPLY_PREFIXES)})|(?:${alternatives(FORWARD_PREFIXES)})) ?(?:[[(^*] ?\\d{1,3} ?[\\])]?)? ?[:：] ?`,
  'iuy',
);
/** `[list-name] `, kept, but marks behind it count all the same. */
const LIST_TAG = /\[[^[\]]{1,100}\] ?/y;

interface SubjectAnalysis {
  base: string;
  /** The outermost mark; empty where the subject has none. */
  mark: 'reply' | 'forward' | null;
}

function analyzeSubject(subject: string): SubjectAnalysis {
  const text = subject.normalize('NFC').replace(/\s+/gu, ' ').trim();
  const tags: string[] = [];
  let mark: SubjectAnalysis['mark'] = null;
  let position = 0;
  let tagsTo = 0;
  for (;;) {
    PREFIX.lastIndex = position;
    const found = PREFIX.exec(text);
    if (found) {
      mark ??= found.groups?.reply === undefined ? 'forward' : 'reply';
      // Tags are decided on only when a mark follows them: those before the text itself belong to it.
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
  return { base: [...kept, rest].join(' ').trim(), mark };
}

function readTags(text: string, from: number, to: number): string[] {
  return [...text.slice(from, to).matchAll(/\[[^[\]]+\]/g)].map(([tag]) => tag);
}

/** The subject without reply and forward marks, white space collapsed; its case is kept. */
export function getBaseSubject(subject: string): string {
  return analyzeSubject(subject).base;
}

/** Whether the subject says of itself that it answers something; a forward does not. */
export function isReplySubject(subject: string): boolean {
  return analyzeSubject(subject).mark === 'reply';
}

/** `Re:` once, whatever marks stood there. */
export function toReplySubject(subject: string): string {
  return `Re: ${getBaseSubject(subject)}`.trimEnd();
}

/** `Fwd:` once, whatever marks stood there. */
export function toForwardSubject(subject: string): string {
  return `Fwd: ${getBaseSubject(subject)}`.trimEnd();
}
