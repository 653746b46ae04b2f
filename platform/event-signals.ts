import type { Logger } from 'pino';
import { type ChannelListener, listenToChannel } from './database/channel-listener.ts';

/**
 * Triggers send topics to this channel: for each new event, the id of its environment or organization (`signal_event`); for
 * each change of access, `access:` and the id of what changed (`signal_access`).
 */
const SIGNALS_CHANNEL = 'agent_email_events';

/**
 * Signals readers that there may be new events, which saves them from polling PostgreSQL constantly. A signal carries no
 * data: a lost one delays reading until the next poll, and a spurious one does no harm.
 */
export interface EventSignals {
  /** @returns unsubscribes. @param topic id of an environment or organization. */
  subscribe(topic: string, wake: () => void): () => void;
  close(): Promise<void>;
}

/**
 * Signals responses that stay open that their credential may have lost its access, also after the connection was
 * interrupted. While notifications are not delivered, there are no signals: the heartbeats of the responses check it.
 */
export interface AccessSignals {
  /** @returns unsubscribes. @param ids organizations, keys and users that the access depends on. */
  watch(ids: readonly string[], wake: () => void): () => void;
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
export function createEventSignals({
  url,
  logger,
  pollMs = POLL_MS,
}: EventSignalsOptions): EventSignals & AccessSignals {
  const events = createTopics();
  const access = createTopics();
  let listener: ChannelListener | undefined;
  let poll: NodeJS.Timeout | undefined;
  let pollsSinceWake = 0;

  function wakeReaders(): void {
    pollsSinceWake = 0;
    events.wakeAll();
  }

  function start(): void {
    listener ??= listenToChannel({
      url,
      channel: SIGNALS_CHANNEL,
      logger,
      onNotification: (topic) => {
        if (topic.startsWith(ACCESS_PREFIX)) access.wake(topic.slice(ACCESS_PREFIX.length));
        else events.wake(topic);
      },
      onConnected: () => {
        wakeReaders();
        access.wakeAll();
      },
    });
    poll ??= setInterval(() => {
      pollsSinceWake += 1;
      if (!listener?.listening || pollsSinceWake >= POLLS_BETWEEN_CHECKS) wakeReaders();
    }, pollMs).unref();
  }

  return {
    subscribe(topic, wake) {
      start();
      return events.add(topic, wake);
    },
    watch(ids, wake) {
      start();
      const removals = ids.map((id) => access.add(id, wake));
      return () => {
        for (const remove of removals) remove();
      };
    },
    async close() {
      clearInterval(poll);
      await listener?.close();
    },
  };
}

const ACCESS_PREFIX = 'access:';

function createTopics() {
  const subscribers = new Map<string, Set<() => void>>();
  return {
    /** @returns removes it. */
    add(topic: string, wake: () => void): () => void {
      const wakeCallbacks = subscribers.get(topic) ?? new Set();
      subscribers.set(topic, wakeCallbacks.add(wake));
      return () => {
        wakeCallbacks.delete(wake);
        if (wakeCallbacks.size === 0 && subscribers.get(topic) === wakeCallbacks) subscribers.delete(topic);
      };
    },
    wake(topic: string): void {
      for (const wake of subscribers.get(topic) ?? []) wake();
    },
    wakeAll(): void {
      for (const wakeCallbacks of subscribers.values()) for (const wake of wakeCallbacks) wake();
    },
  };
}
