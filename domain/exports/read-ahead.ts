import type { ObjectRange, Storage } from '../../platform/storage.ts';

/** Asks for the next piece of a file while the one before it is written. For one reader; it keeps a piece at most. */
export function withReadAhead(storage: Pick<Storage, 'getRange'>): Pick<Storage, 'getRange'> {
  let ahead: { key: string; start: number; maxBytes: number; piece: Promise<ObjectRange> } | undefined;

  function take(key: string, start: number, maxBytes: number): Promise<ObjectRange> | undefined {
    if (ahead?.key !== key || ahead.start !== start || ahead.maxBytes !== maxBytes) return undefined;
    const { piece } = ahead;
    ahead = undefined;
    return piece;
  }

  return {
    async getRange(key, start, maxBytes) {
      const piece = await (take(key, start, maxBytes) ?? storage.getRange(key, start, maxBytes));
      const next = start + piece.bytes.length;
      if (piece.bytes.length > 0 && next < piece.totalBytes) {
        const following = storage.getRange(key, next, maxBytes);
        // Whoever takes it learns of it; perhaps nobody does.
        following.catch(() => {});
        ahead = { key, start: next, maxBytes, piece: following };
      }
      return piece;
    },
  };
}
