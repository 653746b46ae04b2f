import { describeRecipientFailure } from '../../domain/messages/delivery-failure.ts';
import type { RecipientStatus, Signal } from '../../domain/messages/message.entity.ts';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import type { MessageStep, StepType } from '../../domain/messages/message-timeline.service.ts';
import type { LinkKind } from '../../domain/mime/links/link-kinds.ts';
import { type FoundCode, findWording, type INJECTION_RULES } from '../../domain/mime/message-findings.ts';
import type { Tone } from '../shell/charts.ts';

/** Warnings as people say them. */
export const SIGNAL_WORDS: Record<Signal, string> = {
  new_participant: 'New in this conversation',
  authentication_failed: 'Sender not authenticated',
  automated: 'Sent by a program',
  reply_to_differs: 'Replies go to another address',
  hidden_text: 'Has text that people cannot see',
  link_mismatch: 'A link shows another host than its target',
  spoofed_self: 'Claims the domain or address of this inbox without proof',
  no_author: 'Names no author',
};

export const RULE_WORDS: Partial<Record<(typeof INJECTION_RULES)[number], string>> = {
  hidden_text: 'Text that people cannot see',
  encoded_text: 'Encoded text',
};

export const CONFIDENCE_WORDS: Record<FoundCode['confidence'], string> = {
  certain: 'certain',
  high: 'very likely',
  medium: 'likely',
};

export const LINK_WORDS: Record<LinkKind, string> = {
  verify: 'Confirm an address',
  reset: 'Reset a password',
  sign_in: 'Sign in',
  invite: 'Invitation',
  unsubscribe: 'Unsubscribe',
  calendar: 'Calendar',
  other: 'Other',
};

const STEP_WORDS: Record<StepType, readonly [words: string, tone: Tone]> = {
  received: ['Received', 'info'],
  parsed: ['Read and stored', 'good'],
  accepted: ['Accepted by this service', 'info'],
  queued: ['Queued for sending', 'info'],
  attempt: ['Attempt', 'neutral'],
  sent: ['Sent: the relay has taken it', 'good'],
  delivered: ['Delivered', 'good'],
  bounced: ['Bounced', 'bad'],
  complained: ['Reported as spam by the recipient', 'bad'],
  suppressed: ['Not sent: the address is suppressed', 'bad'],
  rejected: ['Not sent', 'bad'],
  canceled: ['Canceled', 'neutral'],
  failed: ['Failed', 'bad'],
  needs_attention: ['Waits for the operator of this service', 'warn'],
};

const ATTEMPT_WORDS: Record<NonNullable<MessageStep['attempt']>['state'], readonly [string, Tone]> = {
  attempting: ['the relay has not answered yet', 'info'],
  accepted: ['the relay accepted it', 'good'],
  deferred: ['the relay asked to try again later', 'warn'],
  refused: ['the relay refused it', 'bad'],
  ambiguous: ['the answer of the relay was lost', 'warn'],
};

export interface ShownStep extends Pick<MessageStep, 'at' | 'recipient' | 'statusCode' | 'detail'> {
  words: string;
  tone: Tone;
}

export function describeStep({ type, attempt, ...step }: MessageStep): ShownStep {
  const { at, recipient, statusCode, detail } = step;
  const [words, tone] = STEP_WORDS[type];
  if (attempt === null) return { at, recipient, statusCode, detail, words, tone };
  const [answer, toneOfAnswer] = ATTEMPT_WORDS[attempt.state];
  return {
    at,
    recipient,
    statusCode,
    detail,
    words: `${words} ${attempt.number}: ${answer}`,
    tone: toneOfAnswer,
  };
}

export interface ShownRecipient {
  email: string;
  status: RecipientStatus;
  statusCode: string | null;
  reason: string | null;
  /** What a person can do; null if nothing is wrong. */
  remedy: string | null;
  isSuppressed: boolean;
}

/** The delivery state of each recipient, in words. */
export function describeRecipients(
  { message, recipients }: MessageDetails,
  isSuppressed: (email: string) => boolean,
): ShownRecipient[] {
  return recipients.map((recipient) => {
    const { email, status, statusCode, diagnosticCode } = recipient;
    const failure = describeRecipientFailure(recipient);
    const isNowSuppressed = failure !== null && isSuppressed(email);
    return {
      email,
      status,
      statusCode,
      reason: failure ? (failure.reason ?? message.statusDetail) : diagnosticCode,
      remedy: message.status === 'canceled' ? null : findRemedy(failure, isNowSuppressed, status),
      isSuppressed: isNowSuppressed,
    };
  });
}

function findRemedy(
  failure: ReturnType<typeof describeRecipientFailure>,
  isSuppressed: boolean,
  status: RecipientStatus,
): string | null {
  if (failure === null) return null;
  const suppressed = 'The address is suppressed: this service sends nothing more to it.';
  if (status === 'suppressed')
    return isSuppressed
      ? `${suppressed} Lift the suppression if it is wrong, and send again.`
      : 'The address was suppressed when the message was sent. It is not any more: send again.';
  return isSuppressed ? `${failure.next} ${suppressed}` : failure.next;
}

/**
 * Words of a message that a rule found, as stored: context after them may end within a word. That word is left out, unless
 * the rule needs it.
 */
export function shortenExcerpt(excerpt: string): string {
  if (/[.!?…][\p{Pe}\p{Pf}"']*$/u.test(excerpt)) return excerpt;
  const whole = excerpt.replace(/\s+\S*$/, '');
  const isEnough = findWording(whole).length === findWording(excerpt).length;
  return `${isEnough ? whole : excerpt}…`;
}
