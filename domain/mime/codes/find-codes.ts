import { toAsciiDigits } from './ascii-digits.ts';
import { type Candidate, findCandidates } from './code-candidates.ts';
import { findKeywords, isAboutSignIn, type Keyword } from './code-keywords.ts';
import { readCodeField, readLastLine } from './origin-bound-codes.ts';

/** A one-time code of a received message. */
export interface FoundCode {
  /** As it is typed. */
  value: string;
  /** As it is written: with its separators. */
  raw: string;
  /** `certain`: bound to an origin. `high`: beside the word for it, or alone on a line. `medium`: in the same sentence. */
  confidence: CodeConfidence;
  /** The line that says what it is. */
  context: string;
  /** The domain that the sender binds the code to; null for most codes. */
  originDomain: string | null;
}
export const CODE_CONFIDENCES = ['certain', 'high', 'medium'] as const;
export type CodeConfidence = (typeof CODE_CONFIDENCES)[number];

export interface CodeSource {
  subject: string;
  /** Visible text without quotes. */
  text: string;
  /** The value of the header field `One-Time-Code`. */
  field?: string | undefined;
}

/** Codes stand at the top of a message. */
const MAX_CHARACTERS = 50_000;
const MAX_LINE = 1_000;
const MAX_CODES = 3;
const MAX_CONTEXT = 160;
/** Non-blank lines between the word for a code and a line with the code alone. */
const LINES_ABOVE = 4;
const LINES_BELOW = 2;
const DIRECT_GAP = 14;
const SENTENCE_GAP = 60;

interface ReadLine {
  text: string;
  keywords: Keyword[];
  candidates: Candidate[];
  /** The only content of the line. */
  alone: Candidate | null;
}

interface Scored {
  candidate: Candidate;
  score: number;
  context: string;
}

/**
 * Finds the one-time codes of a message, the best first. A number without a word for a code near it is not a code. No code is
 * better than a wrong one, so too many equal candidates give none.
 */
export function findCodes({ subject, text, field }: CodeSource): FoundCode[] {
  const bound = [field === undefined ? null : readCodeField(field), readLastLine(text)]
    .filter((code) => code !== null)
    .map(({ value, originDomain, line }) => ({
      value,
      raw: value,
      confidence: 'certain' as const,
      context: line.slice(0, MAX_CONTEXT),
      originDomain,
    }));
  const values = new Set<string>();
  return [...bound, ...findByKeywords(subject, text)]
    .filter(({ value }) => !values.has(value) && values.add(value))
    .slice(0, MAX_CODES);
}

function findByKeywords(subject: string, text: string): FoundCode[] {
  const source = text.slice(0, MAX_CHARACTERS);
  const allowVague = isAboutSignIn(`${subject.slice(0, MAX_LINE)}\n${source}`);
  const title = readLine(subject.slice(0, MAX_LINE), allowVague);
  const lines = toLines(source).map((line) => readLine(line, allowVague));
  const scored = [
    ...scoreSentence(title),
    ...lines.flatMap((line, at) => [...scoreSentence(line), ...scoreAlone(lines, at, title)]),
  ].filter((entry) => !isYear(entry));
  const best = scored.reduce((highest, { score }) => Math.max(highest, score), 0);
  const top = scored.filter(({ score }) => score >= Math.max(best - 20, SCORE.sentence));
  const distinct = [
    ...new Map(top.toReversed().map((entry) => [entry.candidate.value, entry])).values(),
  ].reverse();
  // A list of recovery codes, or a table of numbers.
  if (distinct.length > MAX_CODES) return [];
  return distinct
    .sort((a, b) => b.score - a.score)
    .map(({ candidate: { value, raw }, score, context }) => ({
      value,
      raw,
      confidence: score >= SCORE.below ? 'high' : 'medium',
      context,
      originDomain: null,
    }));
}

const SCORE = { direct: 100, before: 95, above: 90, below: 80, subject: 70, sentence: 50 };

const URL_OR_ADDRESS = /<?(?:https?:\/\/|www\.)[^\s<>]{1,2000}>?|[^\s<>@]{1,64}@[^\s<>@]{1,255}/gi;

function readLine(raw: string, allowVague: boolean): ReadLine {
  const text = toAsciiDigits(raw).replace(URL_OR_ADDRESS, (found) => ' '.repeat(found.length));
  const candidates = findCandidates(text);
  const [first] = candidates;
  const isAlone = first !== undefined && isOnly(text, first);
  return {
    text: raw,
    keywords: findKeywords(text, { allowVague }),
    candidates,
    alone: isAlone ? first : null,
  };
}

function isOnly(line: string, { start, end }: Candidate): boolean {
  return !/[\p{L}\p{N}]/u.test(line.slice(0, start) + line.slice(end));
}

/** Lines that are not blank. Digits that stand each on a line of its own, or in a cell of its own, become one line. */
function toLines(text: string): string[] {
  const lines: string[] = [];
  let single: string[] = [];
  const flush = () => {
    if (single.length >= 4 && single.length <= 8) lines.push(single.join(' '));
    else lines.push(...single);
    single = [];
  };
  for (const full of text.split('\n')) {
    const line = full.trim();
    if (line === '') continue;
    if (/^[0-9]$/.test(toAsciiDigits(line))) {
      single.push(line);
      continue;
    }
    flush();
    for (let at = 0; at < line.length; at += MAX_LINE) lines.push(line.slice(at, at + MAX_LINE));
  }
  flush();
  return lines;
}

/** Candidates in the sentence of a word for a code. */
function scoreSentence({ text, keywords, candidates }: ReadLine): Scored[] {
  if (keywords.length === 0) return [];
  return candidates.flatMap((candidate) => {
    const score = Math.max(0, ...keywords.map((keyword) => scoreNear(text, keyword, candidate)));
    return score === 0 ? [] : [{ candidate, score, context: excerpt(text, candidate) }];
  });
}

/** A number before another noun counts it: "1234 issues". */
const COUNTED =
  /^ (?!(?:to|for|in|into|as|and|or|on|at|is|it|if|by|before|within|when|from|using|which|that|expires|valid|please|below|here|has|will|was)\b)[a-z]{3,}/;
const SENTENCE_END = /[.!?;。！？؟।](?:\s|$)|[。！？]/u;
/** Between a code and the words that say what it is. */
const IS_YOUR =
  /^["'”’»)\]*】」』,:–—-]{0,3} ?(?:is|ist|are|est|es|é|è|to je|to|jest|это|—|–|-|як|as|als|be|är|er|on|είναι|là|adalah|:|は|が|是|为|為|을|를|은|는|이|가)?(?: |$|[^\w\s])/iu;

function scoreNear(line: string, keyword: Keyword, candidate: Candidate): number {
  if (candidate.start >= keyword.end) {
    const gap = line.slice(keyword.end, candidate.start);
    if (gap.length > SENTENCE_GAP || SENTENCE_END.test(gap)) return 0;
    if (gap.length <= DIRECT_GAP && isConnecting(gap)) {
      // "Code" and a word in capitals may be the start of any sentence; a colon or a verb tells.
      const isSaid = candidate.isNumeric || /[:：=]|\b(?:is|ist|est|es|è|é)\b|[是为為はが]/u.test(gap);
      return isSaid ? SCORE.direct : 0;
    }
    const isCount = COUNTED.test(line.slice(candidate.end, candidate.end + 20));
    return candidate.isNumeric && !isCount ? SCORE.sentence : 0;
  }
  if (candidate.end > keyword.start) return 0;
  const gap = line.slice(candidate.end, keyword.start);
  if (gap.length > SENTENCE_GAP || SENTENCE_END.test(gap) || !IS_YOUR.test(gap)) return 0;
  return candidate.isNumeric || /^ (?:is|ist|est|es|è|é) /u.test(gap) ? SCORE.before : 0;
}

/** Whether no word between the name of a code and the code says something else. */
function isConnecting(gap: string): boolean {
  return (gap.match(/\p{Script=Latin}+/gu) ?? []).every((word) => CONNECTING.has(word.toLowerCase()));
}
const CONNECTING = new Set(
  'is are ist lautet est es é è e to jest je är er on la là adalah no number your now here below para de bạn của otp pin code'.split(
    ' ',
  ),
);

/** A line that is only a code, with the word for it above, below or in the subject. */
function scoreAlone(lines: readonly ReadLine[], at: number, title: ReadLine): Scored[] {
  const candidate = lines[at]?.alone;
  if (!candidate) return [];
  const above = lines.slice(Math.max(0, at - LINES_ABOVE), at).findLast(hasKeyword);
  // "Order number" above the number, and "verification" above that.
  const label = lines[at - 1];
  if (label !== undefined && !hasKeyword(label) && OTHER_LABEL.test(label.text)) return [];
  const found = (score: number, line: ReadLine) => [
    { candidate, score, context: line.text.slice(0, MAX_CONTEXT) },
  ];
  if (above) return found(SCORE.above, above);
  const below = lines.slice(at + 1, at + 1 + LINES_BELOW).find(hasKeyword);
  if (below) return found(SCORE.below, below);
  return title.keywords.length > 0 && at < 20 && candidate.isNumeric ? found(SCORE.subject, title) : [];
}

const hasKeyword = ({ keywords }: ReadLine) => keywords.length > 0;
const OTHER_LABEL =
  /(?:order|invoice|ticket|case|tracking|reference|booking|reservation|account|customer|member|phone|date|amount|total|price|quantity|number|no\.|nr\.?|id|zip|postcode|bestellnummer|rechnungsnummer|numéro|número|номер|编号|番号) ?[:：#]?$/iu;

/** A year stands in sentences and footers. Beside the word for a code, or above, it may be a code. */
function isYear({ candidate: { raw }, score }: Scored): boolean {
  return score < SCORE.above && /^(?:19|20)\d\d$/.test(raw);
}

function excerpt(line: string, { start, end }: Candidate): string {
  if (line.length <= MAX_CONTEXT) return line;
  const from = Math.max(0, Math.min(start - 80, line.length - MAX_CONTEXT));
  return line.slice(from, Math.max(end, from + MAX_CONTEXT)).slice(0, MAX_CONTEXT);
}
