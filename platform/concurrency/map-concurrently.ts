/**
 * Maps items with at most `maxConcurrent` calls at the same time. Results are in the order of the items.
 *
 * @throws the first error of `work`. Other calls go on, so that a caller who needs every item catches the errors of `work`.
 */
export async function mapConcurrently<Item, Result>(
  items: Iterable<Item>,
  maxConcurrent: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = Array.from(items).entries();
  const next = async () => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: maxConcurrent }, next));
  return results;
}
