import type { EventType } from '../../domain/events/event-types.ts';
import type { BulkJob, SkipReason } from '../../domain/webhooks/bulk-job.entity.ts';
import type { DeliveryStatus, HoldReason, WebhookDelivery } from '../../domain/webhooks/delivery.entity.ts';
import type { WebhookEndpoint } from '../../domain/webhooks/endpoint.entity.ts';
import { DISABLED_THROUGH_API, isFailing } from '../../domain/webhooks/endpoint-health.ts';
import { probeIntervalMs } from '../../workflows/webhooks/probe-endpoint.contract.ts';
import type { Tone } from '../shell/charts.ts';

/** The types of events as people say them, in the groups of the form. */
export const EVENT_GROUPS: readonly (readonly [group: string, types: readonly EventType[]])[] = [
  [
    'Events of mail',
    [
      'message.received',
      'message.sent',
      'message.delivered',
      'message.bounced',
      'message.complained',
      'message.rejected',
    ],
  ],
  ['Events of approvals', ['draft.pending_approval', 'draft.approved', 'draft.rejected']],
  ['Events of the organization', ['domain.verified', 'usage.warning', 'usage.exceeded']],
];

export const EVENT_WORDS: Record<EventType, readonly [name: string, meaning: string]> = {
  'message.received': ['Message received', 'Someone wrote to an inbox.'],
  'message.sent': ['Message sent', 'A mail server accepted a message of yours.'],
  'message.delivered': ['Message delivered', 'It is in the mailbox of its recipient.'],
  'message.bounced': ['Message bounced', 'It could not be delivered.'],
  'message.complained': ['Marked as spam', 'A recipient reported a message as spam.'],
  'message.rejected': ['Message refused', 'The service refused to send it.'],
  'draft.pending_approval': ['Waits for approval', 'A person has to decide on a message.'],
  'draft.approved': ['Approved', 'A person approved a message.'],
  'draft.rejected': ['Not approved', 'A message was rejected, or its time ran out.'],
  'domain.verified': ['Domain verified', 'A domain is ready for mail.'],
  'usage.warning': ['Usage warning', 'A limit is close.'],
  'usage.exceeded': ['Limit reached', 'A limit of your plan is used up.'],
};

export const STATUS_WORDS: Record<DeliveryStatus, string> = {
  pending: 'In progress',
  delivered: 'Delivered',
  exhausted: 'Failed',
  held: 'On hold',
  canceled: 'Canceled',
  blocked: 'Not allowed',
};

const HOLD_WORDS: Record<HoldReason | 'endpoint_disabled', string> = {
  endpoint_disabled: 'It is delivered when the endpoint is enabled.',
  endpoint_failing: 'It is delivered when the receiver accepts deliveries again.',
  usage_limit: 'The limit of webhook deliveries is used up. It is delivered when the limit allows it.',
  suspension: 'It is delivered when the suspension ends.',
  organization_deleted: 'It is delivered when the organization is recovered.',
  switched_off: 'The operator of the service has switched deliveries off for now.',
};

export const SKIP_WORDS: Record<SkipReason, string> = {
  in_flight: 'an attempt is under way',
  due: 'about to be attempted',
  purged: 'the message was deleted',
  endpoint_disabled: 'the endpoint is paused',
  endpoint_failing: 'the receiver is failing',
  usage_limit: 'the usage limit is reached',
  suspension: 'suspended',
  organization_deleted: 'the organization is closed',
  switched_off: 'deliveries are switched off',
};

interface State {
  tone: Tone;
  text: string;
  why: string;
}

/** How a delivery stands, and why it does not go on. */
export function describeDelivery(
  delivery: Pick<WebhookDelivery, 'status' | 'heldFor' | 'attempts' | 'lastError'>,
  timeoutMs: number,
): State {
  const { status, attempts } = delivery;
  const error = describeError(delivery.lastError, timeoutMs);
  switch (status) {
    case 'delivered':
      return { tone: 'good', text: STATUS_WORDS.delivered, why: '' };
    case 'pending':
      return attempts === 0
        ? { tone: 'info', text: STATUS_WORDS.pending, why: '' }
        : { tone: 'warn', text: 'Retrying', why: error };
    case 'held':
      return {
        tone: 'warn',
        text: STATUS_WORDS.held,
        why: HOLD_WORDS[delivery.heldFor ?? 'endpoint_disabled'],
      };
    case 'exhausted':
      return { tone: 'bad', text: STATUS_WORDS.exhausted, why: error };
    case 'blocked':
      return { tone: 'bad', text: STATUS_WORDS.blocked, why: error };
    case 'canceled':
      return { tone: 'neutral', text: STATUS_WORDS.canceled, why: error };
  }
}

const OUTCOMES: Record<DeliveryStatus, readonly [tone: Tone, text: string]> = {
  pending: ['info', 'not delivered yet'],
  held: ['warn', 'not delivered yet'],
  delivered: ['good', 'delivered to the endpoint'],
  exhausted: ['bad', 'not delivered'],
  blocked: ['bad', 'not delivered'],
  canceled: ['neutral', 'not delivered'],
};

/** Whether the event has reached the endpoint: the name of an event can sound like it, such as “Message delivered”. */
export function describeOutcome(status: DeliveryStatus): { tone: Tone; text: string } {
  const [tone, text] = OUTCOMES[status];
  return { tone, text };
}

/** What the receiver answered last, or why there was no answer. */
export function describeAnswer(
  {
    status,
    attempts,
    lastError,
    lastStatusCode,
  }: Pick<WebhookDelivery, 'status' | 'attempts' | 'lastError' | 'lastStatusCode'>,
  timeoutMs: number,
): string {
  // A cancellation replaces the error of the last attempt, and leaves its status code.
  if (status === 'canceled' && lastStatusCode !== null) return describeStatusCode(lastStatusCode);
  if (lastError !== null && status !== 'canceled') return describeError(lastError, timeoutMs);
  if (lastStatusCode !== null) return describeStatusCode(lastStatusCode);
  if (attempts === 0) return status === 'canceled' ? 'Not tried.' : 'Not tried yet.';
  return status === 'canceled' ? 'See its attempts.' : 'No answer yet.';
}

const describeStatusCode = (code: number): string =>
  code >= 200 && code <= 299
    ? `Accepted: the receiver answered ${code}.`
    : `The receiver answered ${code}${explainStatus(code)}.`;

const NEXT_ATTEMPTS: Record<HoldReason | 'endpoint_disabled', string> = {
  endpoint_disabled: 'when the endpoint is enabled',
  endpoint_failing: 'when the receiver accepts deliveries again',
  usage_limit: 'when the limit allows it',
  suspension: 'when the suspension ends',
  organization_deleted: 'when the organization is recovered',
  switched_off: 'when deliveries are switched on again',
};

/** When a held delivery goes on. The oldest one is tried again and again while its endpoint fails. */
export function describeNextAttempt(
  { heldFor }: Pick<WebhookDelivery, 'heldFor'>,
  interval: string | undefined,
): string {
  if (heldFor === 'endpoint_failing' && interval) return `the next to be tried, ${interval}`;
  return NEXT_ATTEMPTS[heldFor ?? 'endpoint_disabled'];
}

/** How often the service tries a delivery of a failing endpoint; undefined if it tries none by itself. */
export function describeProbes(
  endpoint: Pick<WebhookEndpoint, 'consecutiveFailures' | 'disabled' | 'holdingSince'>,
): string | undefined {
  const { holdingSince, disabled } = endpoint;
  if (!isFailing(endpoint) || disabled || !holdingSince) return undefined;
  const minutes = Math.round(probeIntervalMs(Date.now() - holdingSince.getTime()) / 60_000);
  return minutes === 1 ? 'every minute' : `every ${minutes} minutes`;
}

export interface ShownJob {
  name: string;
  status: BulkJob['status'];
  /** It has ended, and changed nothing. */
  didNothing: boolean;
  text: string;
  detail: string | null;
  isReplay: boolean;
}

/** What a replay or cancellation has done. One that did nothing says why. */
export function describeJob({ kind, status, deliveries, skipped, detail, onlyFailed }: BulkJob): ShownJob {
  const isReplay = kind === 'replay';
  const left = Object.entries(skipped).map(
    ([reason, count]) =>
      `${count.toLocaleString('en-US')} left unchanged (${SKIP_WORDS[reason as SkipReason] ?? reason})`,
  );
  const didNothing = status === 'completed' && deliveries === 0;
  const done = `${deliveries === 1 ? '1 delivery' : `${deliveries.toLocaleString('en-US')} deliveries`} ${isReplay ? 'started' : 'canceled'}`;
  const reason = isReplay ? EMPTY_REPLAY[onlyFailed ? 'failed' : 'all'] : 'No delivery waited.';
  return {
    name: isReplay ? 'Replay' : 'Cancellation',
    status,
    didNothing,
    text: `${[done, ...left].join(', ')}.${didNothing && left.length === 0 ? ` ${reason}` : ''}`,
    detail,
    isReplay,
  };
}

const EMPTY_REPLAY = {
  failed: 'No delivery of the time range has failed or was canceled.',
  all: 'No event of the time range is one that this endpoint gets.',
};

/** How an endpoint stands. Someone has to act if it is failing or disabled. */
export function describeEndpoint(endpoint: WebhookEndpoint): State {
  const { disabled, disabledReason, consecutiveFailures } = endpoint;
  if (disabled)
    return disabledReason === DISABLED_THROUGH_API
      ? { tone: 'warn', text: 'Paused', why: 'Events wait until it is enabled.' }
      : {
          tone: 'bad',
          text: 'Disabled',
          why: `${disabledReason ?? ''} Events wait until it is enabled.`.trim(),
        };
  if (isFailing(endpoint))
    return {
      tone: 'bad',
      text: 'Failing',
      why: `Events wait. The service tries the oldest one ${describeProbes(endpoint) ?? 'first'}, or later if the receiver asks for it, and delivers all when the receiver accepts it.`,
    };
  if (consecutiveFailures > 0) return { tone: 'warn', text: 'Retrying', why: 'Its last attempt failed.' };
  return { tone: 'good', text: 'Active', why: '' };
}

const NETWORK_ERRORS: Record<string, string> = {
  ECONNREFUSED: 'The receiver refused the connection: nothing listens there.',
  ECONNRESET: 'The receiver closed the connection without an answer.',
  EPIPE: 'The receiver closed the connection without an answer.',
  ENOTFOUND: 'The host name does not exist.',
  EAI_AGAIN: 'The host name could not be looked up.',
  EHOSTUNREACH: 'The receiver cannot be reached.',
  ENETUNREACH: 'The receiver cannot be reached.',
  ETIMEDOUT: 'The receiver cannot be reached.',
  EPROTO: 'No secure connection could be made (TLS).',
  CERT_HAS_EXPIRED: 'Its certificate has expired.',
  CERT_NOT_YET_VALID: 'Its certificate is not valid yet.',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'Its certificate is signed by itself, so it is not trusted.',
  SELF_SIGNED_CERT_IN_CHAIN: 'Its certificate comes from an authority that is not trusted.',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'Its certificate comes from an authority that is not trusted.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'Its certificate lacks an intermediate certificate.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'Its certificate belongs to another host name.',
  purged: 'The message was deleted.',
  'Canceled through the API.': 'It was canceled.',
};

/** What went wrong in an attempt, in words; empty if nothing did. */
export function describeError(error: string | null, timeoutMs: number): string {
  if (error === null) return '';
  if (error === 'timeout') return `No answer within ${Math.round(timeoutMs / 1000)} seconds.`;
  const [, status] = /^HTTP (\d{3})$/.exec(error) ?? [];
  if (status !== undefined) return `The receiver answered ${status}${explainStatus(Number(status))}.`;
  if (error.startsWith('HPE_')) return 'What the receiver answered is not HTTP.';
  return NETWORK_ERRORS[error] ?? error;
}

function explainStatus(status: number): string {
  if (status >= 300 && status < 400) return ', a redirect, which is not followed';
  if (status === 401 || status === 403) return ': it did not let the request in';
  if (status === 404 || status === 405) return ': it takes no deliveries at this URL';
  if (status === 410) return ': it wants no more deliveries, so the endpoint is disabled';
  if (status === 413) return ': the delivery is too large for it';
  if (status === 429) return ': too many requests';
  if (status >= 500) return ': it failed';
  return '';
}

const MAX_NAME_LENGTH = 80;

/** The name of an endpoint in lists: what a person wrote, or the beginning of the URL. */
export function endpointName({ description, url }: Pick<WebhookEndpoint, 'description' | 'url'>): string {
  const name = description || url.replace(/^https?:\/\//, '').replace(/\/$/, '');
  return name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH - 1)}…` : name;
}
