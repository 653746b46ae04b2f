/** What is counted of a message, each once, in the hour it happened; `docs/metrics.md` says when. */
export const COUNTED = ['sent', 'delivered', 'bounced', 'complained', 'rejected', 'received'] as const;

/** As {@link COUNTED}, and the mails somebody gave a verdict on: a relay took one, or a recipient's address refused it. */
export const COUNT_COLUMNS = [...COUNTED, 'attempted'] as const;

export type MetricCounts = Record<(typeof COUNT_COLUMNS)[number], number>;

export function noCounts(): MetricCounts {
  return { sent: 0, delivered: 0, bounced: 0, complained: 0, rejected: 0, received: 0, attempted: 0 };
}

export function addCounts(sum: MetricCounts, counts: MetricCounts): MetricCounts {
  const added = noCounts();
  for (const name of COUNT_COLUMNS) added[name] = sum[name] + counts[name];
  return added;
}
