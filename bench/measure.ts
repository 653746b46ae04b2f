/** Runs `work` `count` times, `lanes` concurrently. Returns the duration of each in milliseconds. */
export async function runConcurrently(
  count: number,
  lanes: number,
  work: (index: number) => Promise<void>,
): Promise<number[]> {
  const durations: number[] = [];
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const index = next++;
      const startedAt = performance.now();
      await work(index);
      durations.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return durations;
}

/** By the nearest rank: the smallest value that at least this share of the values do not exceed. */
export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

export interface Figure {
  name: string;
  measured: number;
  baseline: number;
  unit: string;
  /** Minimum ratio of measured to baseline that the project aims for. */
  target: number;
}

export function printFigures(figures: Figure[]): void {
  console.table(
    Object.fromEntries(
      figures.map(({ name, measured: ours, baseline: floor, unit, target: aim }) => [
        name,
        { ours: round(ours), floor: round(floor), unit, ratio: round(ours / floor), aim },
      ]),
    ),
  );
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
