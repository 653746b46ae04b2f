import type { Logger } from 'pino';
import { type ChannelListener, listenToChannel } from './database/channel-listener.ts';

/** For each new event, a trigger on the table `events` sends the id of its environment or organization to this channel. */
const EVENTS_CHANNEL = 'agent_email_events';

/**
 * Signals readers that there may be new events, which saves them from polling PostgreSQL constantly. A signal carries no
 * data: a lost one delays reading until the next poll, and a spurious one does no harm.
 */
export interface EventSignals {
  /** @returns unsubscribes. @param topic id of an environment or organization. */
  subscribe(topic: string, wake: () => void): () => void;
  close(): Promise<void>;
}

export interface EventSignalsOptions {
  url: string;
  logger: Logger;
  /** Polling interval while notifications are not delivered. */
  pollMs?: number;
}

const POLL_MS = 5_000;
/** While notifications are delivered, only every sixth poll wakes the subscribers, as a safety net. */
const POLLS_BETWEEN_CHECKS = 6;

/** Uses one connection per process, opened with the first subscriber. */
export function createEventSignals({ url, logger, pollMs = POLL_MS }: EventSignalsOptions): EventSignals {
  const subscribers = new Map<string, Set<() => void>>();
  let listener: ChannelListener | undefined;
  let poll: NodeJS.Timeout | undefined;
  let pollsSinceWake = 0;

  function wakeAll(): void {
    pollsSinceWake = 0;
    for (const callbacks of subscribers.values()) for (const wake of callbacks) wake();
  }

  function start(): void {
    listener ??= listenToChannel({
      url,
      channel: EVENTS_CHANNEL,
      logger,
      onNotification: (topic) => {
        for (const wake of subscribers.get(topic) ?? []) wake();
      },
      onConnected: wakeAll,
    });
    poll ??= setInterval(() => {
      pollsSinceWake += 1;
      if (!listener?.listening || pollsSinceWake >= POLLS_BETWEEN_CHECKS) wakeAll();
    }, pollMs).unref();
  }

  return {
    subscribe(topic, wake) {
      start();
      const wakeCallbacks = subscribers.get(topic) ?? new Set();
      subscribers.set(topic, wakeCallbacks.add(wake));
      return () => {
        wakeCallbacks.delete(wake);
        if (wakeCallbacks.size === 0 && subscribers.get(topic) === wakeCallbacks) subscribers.delete(topic);
      };
    },
    async close() {
      clearInterval(poll);
      await listener?.close();
    },
  };
}
