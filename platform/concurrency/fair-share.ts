import { networkOf } from '../network.ts';

/**
 * A capacity that tenants share. A holder may have all of it while no other holder waits, and its share of it (a third, or
 * an equal part if more than three holders use it) while others do.
 */
export interface FairShare {
  /**
   * Waits for its turn. Claims within the share of their holders go before others of the same priority; holders take turns.
   *
   * @returns releases what was claimed; calling it again has no effect.
   * @throws the signal's reason if it aborts first.
   */
  acquire(claim: Claim & { signal?: AbortSignal }): Promise<Release>;
  /** Claims at once, or returns null. */
  tryAcquire(claim: Claim): Release | null;
  /** Whether a holder has its fixed maximum, so that only its own releases can help. */
  isAtMaximum(claim: Claim): boolean;
  /** Claimed and waiting amounts. */
  usage(): { used: number; waiting: number };
}

export interface FairShareOptions {
  /** Its row in the table of shared capacities in docs/security.md. */
  name: string;
  capacity: number;
  /**
   * Beyond `capacity`, for claims within the share of their holders only. For capacities that are held so long that waiting
   * for a release would take longer than the work.
   */
  reserve?: number;
}

export interface Claim {
  /** Everyone whose share it counts towards: an organization, and for example its inbox and the client's network. */
  holders: readonly Holder[];
  /** Default: 1. */
  amount?: number;
  /** A smaller one goes first. Default: 0. */
  priority?: number;
  /**
   * Takes the claim back from a holder with more than its share, when another one needs it: then it counts as released.
   *
   * @returns false if it can no longer be taken back.
   */
  reclaim?: () => boolean;
}

export interface Holder {
  /** Shares are equal among the holders of a kind. */
  kind: 'organization' | 'credential' | 'address' | 'network' | 'inbox' | 'process';
  id: string;
  /** Never more than this, even if the rest is free. */
  max?: number;
}

export type Release = () => void;

/** Of the capacity, however few holders use it. */
const LARGEST_SHARE = 1 / 3;

export const organizationHolder = (id: string): Holder => ({ kind: 'organization', id });

/** @param ip of a client. */
export const networkHolder = (ip: string): Holder => ({ kind: 'network', id: networkOf(ip) });

/** One third of a capacity, at least 1: the usual reserve. */
export const thirdOf = (capacity: number): number => Math.max(1, Math.floor(capacity * LARGEST_SHARE));

export function createFairShare({ capacity, reserve = 0 }: FairShareOptions): FairShare {
  const held = new Holdings(capacity);
  const queue = new Queue();
  /** In order of age. */
  const reclaimable = new Map<Claim, Release>();
  let used = 0;

  function fits(claim: Claim): boolean {
    if (held.isAtMaximum(claim)) return false;
    return used + amountOf(claim) <= capacity + (held.isWithinShare(claim) ? reserve : 0);
  }

  function grant(claim: Claim): Release {
    used += amountOf(claim);
    held.add(claim, amountOf(claim));
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      used -= amountOf(claim);
      held.add(claim, -amountOf(claim));
      reclaimable.delete(claim);
      serveWaiting();
    };
    if (claim.reclaim) reclaimable.set(claim, release);
    return release;
  }

  function serveWaiting(): void {
    for (;;) {
      const next = queue.takeNext(fits, (claim) => held.isWithinShare(claim));
      if (!next) return;
      next.resolve(grant(next.claim));
    }
  }

  /** Takes back the newest claims of the holders furthest above their share, until the claim fits or none is left. */
  function reclaimFor(claim: Claim): void {
    if (held.isAtMaximum(claim) || !held.isWithinShare(claim)) return;
    while (!fits(claim)) {
      const taken = findReclaimable(claim);
      if (!taken) return;
      const release = reclaimable.get(taken);
      reclaimable.delete(taken);
      if (taken.reclaim?.()) release?.();
    }
  }

  function findReclaimable(claim: Claim): Claim | undefined {
    let most = 0;
    let found: Claim | undefined;
    for (const each of reclaimable.keys()) {
      const excess = held.excessOf(each, claim);
      if (excess > 0 && excess >= most) {
        most = excess;
        found = each;
      }
    }
    return found;
  }

  function tryAcquire(claim: Claim): Release | null {
    reclaimFor(claim);
    return fits(claim) ? grant(claim) : null;
  }

  return {
    tryAcquire,
    async acquire({ signal, ...claim }) {
      signal?.throwIfAborted();
      const granted = tryAcquire(claim);
      if (granted) return granted;
      const { promise, resolve, reject } = Promise.withResolvers<Release>();
      const leave = queue.add({ claim, resolve });
      const abort = () => {
        leave();
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', abort, { once: true });
      return promise.finally(() => signal?.removeEventListener('abort', abort));
    },
    isAtMaximum: (claim) => held.isAtMaximum(claim),
    usage: () => ({ used, waiting: queue.size }),
  };
}

/** No share was left. An activity is retried after this time, which frees its slot of the worker meanwhile. */
export class NoShareError extends Error {
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number) {
    super('Others use the capacity. It is shared by organizations; the next attempt comes soon.');
    this.name = 'NoShareError';
    this.retryAfterMs = retryAfterMs;
  }
}

/** Longer than most holders need that are about to finish. */
const BRIEF_WAIT_MS = 250;

/**
 * For activities, which occupy a worker while they wait: waits briefly.
 *
 * @param retryAfterMs a jitter of as much is added.
 * @throws NoShareError
 */
export async function acquireBriefly(
  shares: FairShare,
  claim: Claim,
  retryAfterMs: number,
): Promise<Release> {
  const signal = AbortSignal.timeout(BRIEF_WAIT_MS);
  try {
    return await shares.acquire({ ...claim, signal });
  } catch {
    throw new NoShareError(retryAfterMs * (1 + Math.random()));
  }
}

const amountOf = ({ amount = 1 }: Claim): number => amount;

/** How much each holder has, by kind. Holders without a claim have no entry. */
class Holdings {
  readonly #capacity: number;
  readonly #byKind = new Map<Holder['kind'], Map<string, number>>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  add({ holders }: Claim, amount: number): void {
    for (const { kind, id } of holders) {
      const ofKind = this.#byKind.get(kind) ?? new Map<string, number>();
      this.#byKind.set(kind, ofKind);
      const total = (ofKind.get(id) ?? 0) + amount;
      if (total > 0) ofKind.set(id, total);
      else ofKind.delete(id);
    }
  }

  isAtMaximum(claim: Claim): boolean {
    return claim.holders.some(
      (holder) => this.#amountOf(holder) + amountOf(claim) > (holder.max ?? Number.POSITIVE_INFINITY),
    );
  }

  isWithinShare(claim: Claim): boolean {
    return claim.holders.every(
      (holder) => this.#amountOf(holder) + amountOf(claim) <= this.#shareOf(holder.kind, holder),
    );
  }

  /** By how much a holder of `claim` exceeds its share once the holders of `next` have one, too. */
  excessOf(claim: Claim, next: Claim): number {
    const newcomerOf = (kind: Holder['kind']) => next.holders.find((holder) => holder.kind === kind);
    return Math.max(
      ...claim.holders.map(
        (holder) => this.#amountOf(holder) - this.#shareOf(holder.kind, newcomerOf(holder.kind)),
      ),
    );
  }

  #amountOf({ kind, id }: Holder): number {
    return this.#byKind.get(kind)?.get(id) ?? 0;
  }

  #shareOf(kind: Holder['kind'], newcomer: Holder | undefined): number {
    const ofKind = this.#byKind.get(kind);
    const others = ofKind?.size ?? 0;
    const count = newcomer === undefined || ofKind?.has(newcomer.id) ? others : others + 1;
    return Math.max(1, Math.floor(this.#capacity * Math.min(LARGEST_SHARE, 1 / Math.max(1, count))));
  }
}

interface Waiting {
  claim: Claim;
  resolve(release: Release): void;
}

/** Waiting claims by priority and holders. A group without waiting claims has no entry; the first group is next. */
class Queue {
  readonly #groups = new Map<string, Set<Waiting>>();
  size = 0;

  /** @returns removes it, unless it has been taken. */
  add(waiting: Waiting): () => void {
    const { priority = 0, holders } = waiting.claim;
    const key = `${priority} ${holders.map(({ kind, id }) => `${kind}:${id}`).join(' ')}`;
    const group = this.#groups.get(key) ?? new Set();
    this.#groups.set(key, group);
    group.add(waiting);
    this.size += 1;
    return () => this.#remove(key, group, waiting);
  }

  /** The first claim of the best group that fits: lowest priority, then within its share, then longest without a turn. */
  takeNext(fits: (claim: Claim) => boolean, isWithinShare: (claim: Claim) => boolean): Waiting | undefined {
    let best: { key: string; group: Set<Waiting>; next: Waiting; rank: number[] } | undefined;
    for (const [key, group] of this.#groups) {
      const [next] = group;
      if (!next || !fits(next.claim)) continue;
      const rank = [next.claim.priority ?? 0, isWithinShare(next.claim) ? 0 : 1];
      if (!best || isBefore(rank, best.rank)) best = { key, group, next, rank };
    }
    if (!best) return undefined;
    const { key, group, next } = best;
    this.#remove(key, group, next);
    // To the end: the other groups have their turn first.
    if (group.size > 0) {
      this.#groups.delete(key);
      this.#groups.set(key, group);
    }
    return next;
  }

  #remove(key: string, group: Set<Waiting>, waiting: Waiting): void {
    if (!group.delete(waiting)) return;
    this.size -= 1;
    if (group.size === 0) this.#groups.delete(key);
  }
}

const isBefore = ([a1 = 0, a2 = 0]: number[], [b1 = 0, b2 = 0]: number[]): boolean =>
  a1 < b1 || (a1 === b1 && a2 < b2);
