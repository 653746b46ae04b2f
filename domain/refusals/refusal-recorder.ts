import type { Database } from '../../platform/database/database.ts';
import { type CountedRefusal, storeRefusals } from './store-refusals.ts';

/** One refused command. */
export type NewRefusal = Omit<CountedRefusal, 'count' | 'firstAt' | 'lastAt'>;

/**
 * Collects refusals in memory and stores them in batches, because a flood of refused mail must not become a flood of
 * transactions. A crash loses the refusals of the last seconds, but each of them is also in the log.
 */
export interface RefusalRecorder {
  record(refusal: NewRefusal): void;
  /** Stores the collected refusals. Never throws: after a failure, they are stored with the next batch. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

export interface RefusalRecorderOptions {
  database: Database;
  onError(error: unknown): void;
  flushIntervalMs?: number;
  now?: () => Date;
}

const FLUSH_INTERVAL_MS = 2_000;
/** Maximum number of distinct refusals in memory. Further ones are only logged and counted. */
const MAX_COLLECTED = 5_000;
const MAX_ROWS_PER_STATEMENT = 500;

export function createRefusalRecorder({
  database,
  onError,
  flushIntervalMs = FLUSH_INTERVAL_MS,
  now = () => new Date(),
}: RefusalRecorderOptions): RefusalRecorder {
  let collected = new Map<string, CountedRefusal>();
  let storing = Promise.resolve();

  async function store(): Promise<void> {
    const batch = [...collected.entries()];
    collected = new Map();
    for (let start = 0; start < batch.length; start += MAX_ROWS_PER_STATEMENT) {
      const part = batch.slice(start, start + MAX_ROWS_PER_STATEMENT);
      try {
        await storeRefusals(
          database,
          part.map(([, refusal]) => refusal),
        );
      } catch (error) {
        onError(error);
        for (const [key, refusal] of part) add(key, refusal);
      }
    }
  }

  function add(key: string, refusal: CountedRefusal): void {
    const same = collected.get(key);
    if (same) {
      same.count += refusal.count;
      if (refusal.lastAt > same.lastAt) same.lastAt = refusal.lastAt;
    } else if (collected.size < MAX_COLLECTED) collected.set(key, refusal);
  }

  const flush = () => {
    storing = storing.then(store);
    return storing;
  };
  const timer = setInterval(() => void flush(), flushIntervalMs);
  timer.unref();
  return {
    record(refusal) {
      const { direction, stage, reason, address, recipient, sender } = refusal;
      const at = now();
      const key = JSON.stringify([direction, stage, reason, address, recipient, sender]);
      add(key, { ...refusal, count: 1, firstAt: at, lastAt: at });
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}
