/** The counts that the API shows. Each is counted once per message, in the hour in which it happened (`docs/metrics.md`). */
export const PUBLIC_COUNTS = ['sent', 'delivered', 'bounced', 'complained', 'rejected', 'received'] as const;

/** Adds `attempted`: messages that the relay accepted or that bounced. Base of the rates. */
export const COUNT_COLUMNS = [...PUBLIC_COUNTS, 'attempted'] as const;

export type CountColumn = (typeof COUNT_COLUMNS)[number];
export type MetricCounts = Record<CountColumn, number>;

export function zeroCounts(): MetricCounts {
  return Object.fromEntries(COUNT_COLUMNS.map((name) => [name, 0])) as MetricCounts;
}

export function addCounts(sum: MetricCounts, counts: MetricCounts): MetricCounts {
  const added = zeroCounts();
  for (const name of COUNT_COLUMNS) added[name] = sum[name] + counts[name];
  return added;
}
