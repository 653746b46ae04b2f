import type { Logger } from 'pino';
import { type ChannelListener, listenToChannel } from './database/channel-listener.ts';

/** A trigger of the table `events` notifies on it, with the id of the environment or organization that has a new one. */
export const EVENTS_CHANNEL = 'agent_email_events';

/**
 * Tells readers of events that it is time to look, without their asking PostgreSQL over and over. A signal says
 * nothing but that: a lost one delays the look until the next poll, and an idle one finds nothing.
 */
export interface EventSignals {
  /** @returns ends it. @param topic id of an environment or organization. */
  subscribe(topic: string, wake: () => void): () => void;
  close(): Promise<void>;
}

export interface EventSignalsOptions {
  url: string;
  logger: Logger;
  /** How often everybody looks while notifications do not come through. */
  pollMs?: number;
}

const POLL_MS = 5_000;
/** While notifications come through a poll has nothing to find; every so many turns it looks all the same. */
const POLLS_BETWEEN_CHECKS = 6;

/** One connection for the whole process, made when the first reader comes. */
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
      const wakes = subscribers.get(topic) ?? new Set();
      subscribers.set(topic, wakes.add(wake));
      return () => {
        wakes.delete(wake);
        if (wakes.size === 0 && subscribers.get(topic) === wakes) subscribers.delete(topic);
      };
    },
    async close() {
      clearInterval(poll);
      await listener?.close();
    },
  };
}
