import type { LimitedResource, UsageCounter } from '../../domain/usage/counters.ts';
import type { LimitSource } from './limit-form.ts';

/** How a page names what is counted, and the list behind the number. */
export const WORDS: Readonly<Record<LimitedResource, { name: string; path: string }>> = {
  messages_sent: { name: 'Messages sent', path: '/messages' },
  messages_received: { name: 'Messages received', path: '/messages' },
  storage_bytes: { name: 'Storage', path: '/messages' },
  api_calls: { name: 'API calls', path: '/requests' },
  webhook_deliveries: { name: 'Webhook deliveries', path: '/webhooks' },
  inboxes: { name: 'Inboxes', path: '/inboxes' },
  domains: { name: 'Domains', path: '/domains' },
};

export const counterName = (counter: LimitedResource): string => WORDS[counter].name;

export const SOURCES: Readonly<Record<LimitSource, string>> = {
  tier: 'of the plan',
  override: 'granted to you',
  own: 'set by you',
};

/** The graphs of the history, by the word in the address. */
export const GRAPHS = {
  mail: {
    name: 'Mail',
    kind: 'bars',
    series: [
      ['messages_sent', 'Sent', 'info'],
      ['messages_received', 'Received', 'good'],
    ],
  },
  calls: { name: 'API calls', kind: 'bars', series: [['api_calls', 'API calls', 'info']] },
  webhooks: {
    name: 'Webhooks',
    kind: 'bars',
    series: [['webhook_deliveries', 'Webhook deliveries', 'info']],
  },
  storage: { name: 'Storage', kind: 'line', series: [['storage_bytes', 'Bytes stored', 'info']] },
} as const satisfies Record<
  string,
  {
    name: string;
    kind: 'bars' | 'line';
    series: readonly (readonly [UsageCounter, string, 'info' | 'good'])[];
  }
>;
export type Graph = keyof typeof GRAPHS;
