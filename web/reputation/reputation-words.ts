import type { ListEntry } from '../../domain/deliverability/list-entry.entity.ts';
import type { ListDirection, ListEffect } from '../../domain/deliverability/list-match.ts';
import type { Suppression, SuppressionOrigin } from '../../domain/deliverability/suppression.entity.ts';
import type { HourCounts } from '../../domain/metrics/metric.service.ts';
import type { RefusalReason, RefusalStage } from '../../domain/refusals/refusal.entity.ts';

export const ORIGINS: Record<SuppressionOrigin, string> = {
  bounce: 'The address does not exist or takes no mail: a message bounced.',
  complaint: 'The recipient reported a message as spam.',
  unsubscribe: 'The recipient unsubscribed.',
  manual: 'Added by someone of your organization.',
};

/** What lifting a suppression risks. */
const RISKS: Record<SuppressionOrigin, string> = {
  bounce:
    'Lift it if the address works again. If it still bounces, it is suppressed again, and the bounce counts against your score.',
  complaint: 'Write to this person only if they asked you to. Another complaint counts heavily.',
  unsubscribe: 'Write to this person only if they asked you to.',
  manual: 'Messages to the address are sent again.',
};

export const describeSuppression = (suppression: Suppression) => ({
  ...suppression,
  reason: ORIGINS[suppression.origin],
  risk: RISKS[suppression.origin],
});

export type ListKey = `${ListDirection}-${ListEffect}`;

/** The four lists, with what an entry does. */
export const LISTS: Record<
  ListKey,
  { direction: ListDirection; effect: ListEffect; name: string; meaning: string; empty: string }
> = {
  'send-block': {
    direction: 'send',
    effect: 'block',
    name: 'Never send to',
    meaning: 'A message with such a recipient is refused as a whole.',
    empty: 'Agents may write to every address that is not suppressed.',
  },
  'send-allow': {
    direction: 'send',
    effect: 'allow',
    name: 'May send to',
    meaning:
      'Makes exceptions from “Never send to” of a wider scope. It does not limit agents to these addresses, and lifts no suppression.',
    empty: 'There are no exceptions.',
  },
  'receive-block': {
    direction: 'receive',
    effect: 'block',
    name: 'Never receive from',
    meaning: 'Mail of such a sender is refused, and the sender is told so.',
    empty: 'Mail of every sender is taken.',
  },
  'receive-allow': {
    direction: 'receive',
    effect: 'allow',
    name: 'Always receive from',
    meaning:
      'Makes exceptions from “Never receive from” of a wider scope. Authenticated mail of such an author is never labeled as spam.',
    empty: 'There are no exceptions.',
  },
};
export const LIST_KEYS = Object.keys(LISTS) as ListKey[];

/** @param names of inboxes and environments, by id. */
export const describeEntry = (entry: ListEntry, names: ReadonlyMap<string, string>) => ({
  ...entry,
  covers: entry.entry.includes('@') ? 'this address' : 'the domain and its subdomains',
  appliesTo:
    entry.inboxId !== null
      ? (names.get(entry.inboxId) ?? entry.inboxId)
      : entry.environmentId !== null
        ? `environment ${names.get(entry.environmentId) ?? entry.environmentId}`
        : 'whole organization',
});

export const REFUSALS: Record<RefusalReason, string> = {
  unknown_mailbox: 'No inbox has this address',
  sender_blocked: 'The sender is on “Never receive from”',
  sender_unauthenticated: 'The sender is allowed only if authenticated, and was not',
  receive_limit: 'Your limit of received mail is reached; the sender tries again',
  catch_all_limit: 'Too much mail to addresses that no inbox has; the sender tries again',
  message_too_large: 'The message is too large',
  too_many_hops: 'The message went in circles between servers',
  too_slow: 'The data came too slowly; the sender tries again',
  too_busy: 'The service was busy; the sender tries again',
  client_disconnected: 'The sender broke off',
  temporary_failure: 'The service could not take it; the sender tries again',
  wrong_credentials: 'Login with a wrong name or password',
  too_many_logins: 'Too many failed logins',
  not_authenticated: 'An email client did not log in',
  wrong_sender: 'An email client used a sender that is not its own',
  invalid_recipient: 'The recipient is not a valid address',
  service_paused: 'Sending is paused',
  too_many_recipients: 'Too many recipients',
  usage_limit: 'A limit of your plan is reached; the sender tries again',
  malformed_message: 'The message cannot be read',
  message_rejected: 'The message of an email client was rejected',
};

export const STAGES: Record<RefusalStage, string> = {
  connect: 'at the connection',
  auth: 'at the login',
  mail: 'at the sender',
  rcpt: 'at the recipient',
  data: 'at the message itself',
};

/** Ranges of the score. */
export const RANGES = {
  '24h': { text: '24 hours', days: 1 },
  '7d': { text: '7 days', days: 7 },
  '30d': { text: '30 days', days: 30 },
} as const;
export type Range = keyof typeof RANGES;

/** What became of sends, by hour or day (UTC). */
export function toChart(hours: readonly HourCounts[], unit: 'hour' | 'day') {
  const length = unit === 'hour' ? 13 : 10;
  const groups = Map.groupBy(hours, ({ hour }) => hour.toISOString().slice(0, length));
  const total = (group: readonly HourCounts[], name: 'delivered' | 'bounced' | 'complained' | 'rejected') =>
    group.reduce((sum, counts) => sum + counts[name], 0);
  return {
    label: unit === 'hour' ? 'Outcomes by hour' : 'Outcomes by day',
    unit,
    points: [...groups.values()].map((group) => ({
      at: (group[0] as HourCounts).hour,
      values: {
        delivered: total(group, 'delivered'),
        bounced: total(group, 'bounced'),
        complained: total(group, 'complained'),
        rejected: total(group, 'rejected'),
      },
    })),
    series: [
      ['delivered', 'Delivered', 'good'],
      ['bounced', 'Bounced', 'bad'],
      ['complained', 'Reported as spam', 'warn'],
      ['rejected', 'Rejected', 'info'],
    ] as const,
  };
}
