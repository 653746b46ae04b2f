import type { Storage } from '../../platform/storage.ts';
import type { ObjectRange } from '../../platform/storage-range.ts';

/** Prefetches the next range of a file. For a single sequential reader; holds at most one range. */
export function withReadAhead(storage: Pick<Storage, 'getRange'>): Pick<Storage, 'getRange'> {
  let ahead: { key: string; start: number; maxBytes: number; range: Promise<ObjectRange> } | undefined;

  function take(key: string, start: number, maxBytes: number): Promise<ObjectRange> | undefined {
    if (ahead?.key !== key || ahead.start !== start || ahead.maxBytes !== maxBytes) return undefined;
    const { range } = ahead;
    ahead = undefined;
    return range;
  }

  return {
    async getRange(key, start, maxBytes) {
      const range = await (take(key, start, maxBytes) ?? storage.getRange(key, start, maxBytes));
      const next = start + range.bytes.length;
      if (range.bytes.length > 0 && next < range.totalBytes) {
        const following = storage.getRange(key, next, maxBytes);
        // Awaited by the next read, if there is one; otherwise the rejection would be unhandled.
        following.catch(() => {});
        ahead = { key, start: next, maxBytes, range: following };
      }
      return range;
    },
  };
}
