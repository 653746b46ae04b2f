import type { Event } from './event.entity.ts';
import type { Follower } from './event-follower.ts';

/** A call that waits for something. */
export interface Wait<Found> {
  /** Returns what was waited for; undefined after `waitMs` or when closed. */
  next(waitMs: number): Promise<Found | undefined>;
  close(): void;
}

export interface WaitForState<State> {
  follower: Follower;
  /** Returns the state once it is the one that is waited for. */
  read(): Promise<State | undefined>;
  /** Whether an event may have changed the state. */
  concerns(event: Event): boolean;
}

/** The state is also read at this interval, because not every change of it has an event. */
const READ_INTERVAL_MS = 5_000;

/** Waits until a state is reached. */
export function waitForState<State>({ follower, read, concerns }: WaitForState<State>): Wait<State> {
  /** Returns after an event that may concern the state, or after `waitMs`. */
  async function waitForEvent(waitMs: number): Promise<void> {
    const deadline = performance.now() + waitMs;
    for (;;) {
      const events = await follower.next(Math.max(0, deadline - performance.now()));
      if (events.length === 0 || events.some(concerns)) return;
    }
  }

  return {
    close: follower.close,
    async next(waitMs) {
      const deadline = performance.now() + waitMs;
      for (;;) {
        // Read after the follower has its position, so that no change is missed between the two.
        const state = await read();
        const leftMs = deadline - performance.now();
        if (state !== undefined || leftMs <= 0) return state;
        await waitForEvent(Math.min(leftMs, READ_INTERVAL_MS));
      }
    },
  };
}
