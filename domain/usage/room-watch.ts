import type { EntityManager } from '@mikro-orm/postgresql';
import type { UsageCounter } from './counters.ts';
import { roomWithin } from './effective-limit.ts';
import { readStandings } from './standings.ts';

/** How much more of a counter there may be, for those who ask often. */
export interface RoomWatch {
  /**
   * Null where nothing is refused; that is remembered for a while, so that ordinary organizations cost no statement.
   * Where something is, the number is of this moment.
   */
  roomOf(em: EntityManager, organizationId: string): Promise<number | null>;
}

export interface RoomWatchOptions {
  counter: UsageCounter;
  now?: () => Date;
  /** How late a limit may be noticed that an organization did not have before. */
  rememberedForMs?: number;
}

const REMEMBERED_FOR_MS = 10_000;
const MAX_REMEMBERED = 10_000;

export function createRoomWatch({
  counter,
  now = () => new Date(),
  rememberedForMs = REMEMBERED_FOR_MS,
}: RoomWatchOptions): RoomWatch {
  /** Until when an organization counts as one without a hard limit. */
  const unlimited = new Map<string, number>();
  return {
    async roomOf(em, organizationId) {
      const time = now();
      if ((unlimited.get(organizationId) ?? 0) > time.getTime()) return null;
      unlimited.delete(organizationId);
      const [standing] = await readStandings(em, {
        organizationIds: [organizationId],
        counters: [counter],
        now: time,
      });
      const room = standing ? roomWithin(standing.limit, standing.current) : null;
      if (room !== null) return room;
      unlimited.set(organizationId, time.getTime() + rememberedForMs);
      const [oldest] = unlimited.keys();
      if (unlimited.size > MAX_REMEMBERED && oldest !== undefined) unlimited.delete(oldest);
      return null;
    },
  };
}
