/**
 * Runs a batch again until one is not full, at most `maxBatches` times.
 *
 * @param runBatch returns how many items it handled, at most `size`.
 * @returns the sum.
 */
export async function runInBatches(
  runBatch: () => Promise<number>,
  { size, maxBatches }: { size: number; maxBatches: number },
): Promise<number> {
  let handled = 0;
  for (let batch = 0; batch < maxBatches; batch += 1) {
    const count = await runBatch();
    handled += count;
    if (count < size) break;
  }
  return handled;
}
