import { runWithTimeout } from '../../platform/run-with-timeout.ts';
import { type FoundCode, findCodes } from './codes/find-codes.ts';
import { findInjection, type Injection, NO_INJECTION } from './injection/find-injection.ts';
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

/** Raise it if the rules change so much that `mail:parse-again` should read older mail again. */
export const FINDINGS_VERSION = 2;

/** What an agent looks for in a message. */
export interface MessageFindings extends FoundLinks {
  codes: FoundCode[];
  injection: Injection;
}

export const NO_FINDINGS: MessageFindings = {
  codes: [],
  links: [],
  allLinks: [],
  hasMoreLinks: false,
  injection: NO_INJECTION,
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
  const anchors = visibleHtml === null ? [] : readVisibleAnchors(visibleHtml, timeoutMs);
  return {
    ...message,
    codes: findCodes({ subject, text, field: headers['one-time-code'] }),
    injection: findInjection({ subject, text, hidden: message.hiddenText }),
    ...findLinks({ subject, from: from?.email, text, anchors }),
  };
}

/** Real messages take a few milliseconds. */
const TIMEOUT_MS = 2_000;

function readVisibleAnchors(html: string, timeoutMs: number = TIMEOUT_MS): Anchor[] {
  return runWithTimeout(timeoutMs, () => readAnchors(markHtmlQuotes(html))) ?? [];
}
