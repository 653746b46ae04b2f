import { runWithTimeout } from '../../platform/run-with-timeout.ts';
import { type FoundCode, findCodes } from './codes/find-codes.ts';
import { decodedTexts, findInjection, type Injection, NO_INJECTION } from './injection/find-injection.ts';
import { findNamedAddresses } from './injection/named-addresses.ts';
import { type Anchor, readAnchors } from './links/anchors.ts';
import { type FoundLinks, findLinks } from './links/find-links.ts';
import { type MessageText, readMessageText } from './message-text.ts';
import type { ParsedHeader } from './parse-mail.ts';
import { markHtmlQuotes } from './quotes/html-quotes.ts';

export { CODE_CONFIDENCES, type FoundCode } from './codes/find-codes.ts';
export {
  INJECTION_LEVELS,
  INJECTION_RULES,
  type Injection,
  MAX_INJECTION_REASONS,
  NO_INJECTION,
} from './injection/find-injection.ts';
export { findNamedAddresses, MAX_NAMED_ADDRESSES } from './injection/named-addresses.ts';
export { findWording } from './injection/wording.ts';

/** Raise it if the rules change so much that `mail:parse-again` should read older mail again. */
export const FINDINGS_VERSION = 2;

/** What an agent looks for in a message. */
export interface MessageFindings extends FoundLinks {
  codes: FoundCode[];
  injection: Injection;
  /** The addresses in the text of a message with an alarm; empty for any other. Null: too many to list. */
  alarmAddresses: string[] | null;
}

export const NO_FINDINGS: MessageFindings = {
  codes: [],
  links: [],
  allLinks: [],
  hasMoreLinks: false,
  injection: NO_INJECTION,
  alarmAddresses: [],
};

type Header = Pick<ParsedHeader, 'subject' | 'from' | 'headers'>;

/** Reads the text of a message, and finds codes and links in what people can see of it, and instructions in all of it. */
export function readMessage(
  { subject, from, headers }: Header,
  bodies: { text: string | null; html: string | null },
  timeoutMs?: number,
): MessageText & MessageFindings {
  const { message, visibleHtml } = readMessageText(bodies, timeoutMs);
  const { extractedText: text } = message;
  const injection = findInjection({ subject, text, hidden: message.hiddenText });
  const anchors = visibleHtml === null ? [] : readVisibleAnchors(visibleHtml, timeoutMs);
  return {
    ...message,
    codes: findCodes({ subject, text, field: headers['one-time-code'] }),
    injection,
    alarmAddresses:
      injection.level === 'alarm'
        ? findAlarmAddresses([subject, text, message.hiddenText ?? '', bodies.text ?? '', bodies.html ?? ''])
        : [],
    ...findLinks({ subject, from: from?.email, text, anchors }),
  };
}

/** The bodies also have quotes and the targets of links, which the text for agents lacks. */
const findAlarmAddresses = (texts: readonly string[]): string[] | null =>
  findNamedAddresses([...texts, ...texts.flatMap(decodedTexts)]);

/** Real messages take a few milliseconds. */
const TIMEOUT_MS = 2_000;

function readVisibleAnchors(html: string, timeoutMs: number = TIMEOUT_MS): Anchor[] {
  return runWithTimeout(timeoutMs, () => readAnchors(markHtmlQuotes(html))) ?? [];
}
