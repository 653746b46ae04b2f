type Starter<T> = (signal: AbortSignal) => Promise<T>;

/**
 * Starts several things concurrently. If one fails, the others are aborted. Rejects only after all have settled, so
 * that nothing is still starting while the caller cleans up.
 */
export async function startConcurrently<T extends readonly unknown[]>(
  signal: AbortSignal,
  starters: readonly [...{ [K in keyof T]: Starter<T[K]> }],
): Promise<T> {
  const failure = new AbortController();
  const linked = AbortSignal.any([signal, failure.signal]);
  const work = starters.map(async (starter) => {
    try {
      return await starter(linked);
    } catch (error) {
      failure.abort(error);
      throw error;
    }
  });
  await Promise.allSettled(work);
  // The first failure caused the others.
  if (failure.signal.aborted) throw failure.signal.reason;
  return (await Promise.all(work)) as unknown as T;
}
