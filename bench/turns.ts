import { cpuBetween, cpuSeconds } from './cpu.ts';
import { percentile } from './measure.ts';

/** One of the things that are compared. */
export interface Runner {
  name: string;
  /** Processes `count` messages, and returns when all are done. */
  run(count: number): Promise<void>;
  /** Of a baseline: the rate that the first runner should reach, as a share of the rate of this one. */
  aim?: number;
}

interface Slice {
  perSecond: number;
  /** Processor time of all processes for each message. */
  cpuMs: number;
  /** The same for each kind of process. */
  cpuMsOf: Record<string, number>;
}

const SLICES = 9;

/**
 * Runs the first runner and its baselines in alternating slices, because the speed of the machine changes within minutes:
 * each slice of a baseline is compared with the slice of the first runner in the same round. Prints median and spread
 * (smallest and largest) of rates and ratios, and the processor time for each message. An idle runner polls meanwhile, which
 * counts against the other.
 */
export async function compareInTurns(messages: number, runners: readonly Runner[]): Promise<void> {
  const count = Math.ceil(messages / SLICES);
  const rounds: Slice[][] = [];
  for (let round = 0; round < SLICES; round += 1) {
    const slices: Slice[] = new Array(runners.length);
    // Each round begins with another one, so that none always follows the same.
    for (let turn = 0; turn < runners.length; turn += 1) {
      const index = (round + turn) % runners.length;
      slices[index] = await measureSlice(runners[index] as Runner, count);
    }
    rounds.push(slices);
  }
  console.log(`${SLICES} alternating slices of ${count}`);
  console.table(
    Object.fromEntries(runners.map((runner, index) => [runner.name, describe(runner, index, rounds)])),
  );
  for (const [index, { name }] of runners.entries())
    console.log(
      `CPU ms per message, ${name}:`,
      medianByProcess(rounds.map((slices) => sliceOf(slices, index))),
    );
}

async function measureSlice({ run }: Runner, count: number): Promise<Slice> {
  const before = cpuSeconds();
  const startedAt = performance.now();
  await run(count);
  const seconds = (performance.now() - startedAt) / 1000;
  const cpuMsOf = Object.fromEntries(
    Object.entries(cpuBetween(before, cpuSeconds(), 0)).map(([name, used]) => [name, (1000 * used) / count]),
  );
  const cpuMs = Object.values(cpuMsOf).reduce((sum, each) => sum + each, 0);
  return { perSecond: count / seconds, cpuMs, cpuMsOf };
}

function describe({ aim }: Runner, index: number, rounds: Slice[][]): object {
  const rates = rounds.map((slices) => sliceOf(slices, index).perSecond);
  const cpu = rounds.map((slices) => sliceOf(slices, index).cpuMs);
  const figures = {
    '1/s': one(median(rates)),
    spread: spreadOf(rates, one),
    'CPU ms': one(median(cpu)),
    'CPU spread': spreadOf(cpu, one),
  };
  if (index === 0) return figures;
  const ratios = rounds.map((slices) => sliceOf(slices, 0).perSecond / sliceOf(slices, index).perSecond);
  const cpuRatios = rounds.map((slices) => sliceOf(slices, index).cpuMs / sliceOf(slices, 0).cpuMs);
  return {
    ...figures,
    ratio: two(median(ratios)),
    'ratio spread': spreadOf(ratios, two),
    'CPU ratio': two(median(cpuRatios)),
    ...(aim === undefined ? {} : { aim }),
  };
}

function medianByProcess(slices: Slice[]): Record<string, number> {
  const names = new Set(slices.flatMap(({ cpuMsOf }) => Object.keys(cpuMsOf)));
  const medians = [...names].map(
    (name) => [name, one(median(slices.map(({ cpuMsOf }) => cpuMsOf[name] ?? 0)))] as const,
  );
  return Object.fromEntries(medians.filter(([, ms]) => ms >= 0.2).sort(([, a], [, b]) => b - a));
}

const sliceOf = (slices: Slice[], index: number): Slice => slices[index] as Slice;
const median = (values: number[]): number => percentile(values, 0.5);
const spreadOf = (values: number[], format: (value: number) => number): string =>
  `${format(Math.min(...values))}–${format(Math.max(...values))}`;
const one = (value: number): number => Math.round(value * 10) / 10;
const two = (value: number): number => Math.round(value * 100) / 100;
