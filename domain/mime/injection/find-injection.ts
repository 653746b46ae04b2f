import { findWording, WORDING_RULES } from './wording.ts';

/** There is no level for "safe": rules recognize wording, not intent. */
export const INJECTION_LEVELS = ['none', 'review', 'alarm'] as const;
export type InjectionLevel = (typeof INJECTION_LEVELS)[number];

/** `hidden_text`, `encoded_text`: an instruction to an agent stands in text that people cannot see, or in base64. */
export const INJECTION_RULES = ['hidden_text', 'encoded_text', ...WORDING_RULES] as const;
export type InjectionRule = (typeof INJECTION_RULES)[number];

/** Signs that a message tries to instruct the agent that reads it. */
export interface Injection {
  level: InjectionLevel;
  /** The evidence, the worst first. */
  reasons: { rule: InjectionRule; excerpt: string }[];
}

export const NO_INJECTION: Injection = { level: 'none', reasons: [] };

export const MAX_INJECTION_REASONS = 5;
/** An attack that an agent should act on is at the start of what it reads. */
const MAX_SEARCHED_CHARACTERS = 100_000;
const MAX_ENCODED_BLOCKS = 20;
const ENCODED_BLOCK = /[A-Za-z0-9+/_-]{40,4000}={0,2}/g;

/**
 * Reads what people can see of a message, and what they cannot. Words of an instruction to an agent that people can see are for
 * review: they also occur in mail about agents. In hidden or encoded text they are an alarm, because honest senders have no
 * reason to hide them.
 *
 * @param hidden text that people cannot see, with what Unicode tags and variation selectors spell; null if there is none.
 */
export function findInjection({
  subject,
  text,
  hidden,
}: {
  subject: string;
  text: string;
  hidden: string | null;
}): Injection {
  const visible = normalize(`${subject}\n${text}`);
  const unseen = normalize(hidden ?? '');
  const alarms = [
    ...findWording(unseen).map(({ excerpt }) => ({ rule: 'hidden_text' as const, excerpt })),
    ...decodedTexts(`${visible}\n${unseen}`)
      .flatMap(findWording)
      .map(({ excerpt }) => ({ rule: 'encoded_text' as const, excerpt })),
  ];
  const reasons = [...alarms, ...findWording(visible)].slice(0, MAX_INJECTION_REASONS);
  if (reasons.length === 0) return NO_INJECTION;
  return { level: alarms.length > 0 ? 'alarm' : 'review', reasons };
}

/** Compatibility forms (full-width, mathematical letters) become plain ones. Lines stay, because roles stand at their start. */
function normalize(text: string): string {
  return text
    .slice(0, MAX_SEARCHED_CHARACTERS)
    .normalize('NFKC')
    .replace(/[^\S\n]+/g, ' ');
}

/** The texts that runs of base64 (RFC 4648 sections 4 and 5) decode to. */
export function decodedTexts(text: string): string[] {
  const texts: string[] = [];
  for (const [block] of text.matchAll(ENCODED_BLOCK)) {
    if (texts.length === MAX_ENCODED_BLOCKS) break;
    const decoded = Buffer.from(block, 'base64').toString('utf8');
    if (isText(decoded)) texts.push(normalize(decoded));
  }
  return texts;
}

/** Random bytes are rarely valid UTF-8 without control characters. */
const isText = (decoded: string): boolean => !/[\u{fffd}\p{Cc}]/u.test(decoded.replace(/[\t\r\n]/g, ''));
