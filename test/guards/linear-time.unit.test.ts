import { globSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { TIME_FACTOR } from '../support/time-factor.ts';
import { ADAPTERS, type Call, EXEMPT } from './hostile-exports.ts';
import { findExpressions, listHostileInputs, listUnits } from './hostile-inputs.ts';

const CHARACTERS = 64 * 1024;
/** Twice the input takes twice the time in linear code and four times the time in quadratic code. */
const MAX_RATIO = 3;
/** Faster runs are not compared: their time is mostly noise. */
const FLOOR_MS = 20;
/** A busy machine slows single runs, so that the fastest of several runs counts. */
const MAX_RUNS = 8;
/** See {@link isQuick}. */
const QUICK_PART = 1 / 16;
/** A call that was not quick for so many inputs is not quick for the others either: trying costs more than it saves. */
const MAX_QUICK_TRIES = 3;
/** See {@link isLinearAt}. */
const SMALL = [
  { part: 1 / 8, maxRatio: 4.4 },
  { part: 1 / 4, maxRatio: 4.8 },
];
const SMALL_RUNS = 2;
/** Linear code may still do too much for each character. Far above what any input takes. */
const MAX_MS = 2_000 * TIME_FACTOR;
const TEST_TIMEOUT_MS = 300_000;

const modules = globSync('domain/{mime,delivery-reports,inbound}/**/*.ts')
  .map((file) => file.slice('domain/'.length, -'.ts'.length))
  .sort();
const load = async (module: string): Promise<Record<string, unknown>> =>
  import(`../../domain/${module}.ts`) as Promise<Record<string, unknown>>;

type Measure = (call: Call, text: string) => Promise<number>;

/** Milliseconds of this thread, which a busy machine does not extend. */
async function measureThread(call: Call, text: string): Promise<number> {
  leaveProcessor();
  const start = process.threadCpuUsage();
  await call(text);
  leaveProcessor();
  const { user, system } = process.threadCpuUsage(start);
  return (user + system) / 1_000;
}

/** Linux accounts for the time of a running thread at the ticks of its clock, every 4 ms, and when the thread sleeps. */
function leaveProcessor(): void {
  Atomics.wait(sleeper, 0, 0, 0.01);
}
const sleeper = new Int32Array(new SharedArrayBuffer(4));

/**
 * Whether even quadratic code that is this fast for a small input stays below the floor for the whole. Most calls are. By
 * the clock, which may show more than the thread took, never less, so that they need no exact measurement.
 */
async function isQuick(call: Call, build: (characters: number) => string): Promise<boolean> {
  const text = build(2 * CHARACTERS * QUICK_PART);
  const start = performance.now();
  await call(text);
  return performance.now() - start < FLOOR_MS * QUICK_PART ** 2;
}

/**
 * Whether inputs of an eighth or a quarter of the full size already show that the call keeps to the guard, which spares
 * most calls the large ones. Time that is a·n + b·n², and violates the guard at 64 and 128 KiB, has b·n ≥ a there: it
 * takes at least 4.7 times as long at 16 KiB as at 4, and 5.3 times at 32 as at 8, where linear time takes four times as
 * long. What takes 20 ms for 128 KiB takes at least a sixteenth for 32 KiB.
 */
async function isLinearAt(
  { part, maxRatio }: (typeof SMALL)[number],
  call: Call,
  build: (characters: number) => string,
  { characters, measure }: { characters: number; measure: Measure },
): Promise<boolean> {
  const [quarter, whole] = [build((characters * part) / 2), build(2 * characters * part)];
  let [quarterMs, wholeMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let run = 0; run < SMALL_RUNS; run += 1) {
    wholeMs = Math.min(wholeMs, await measure(call, whole));
    // Even quadratic code that is this fast here stays below the floor for the whole.
    if (wholeMs < FLOOR_MS * part ** 2) return true;
    // Twice, since garbage that is collected during a short run would make it slow.
    quarterMs = Math.min(quarterMs, await measure(call, quarter), await measure(call, quarter));
    if (wholeMs <= maxRatio * quarterMs && wholeMs < MAX_MS * part ** 2) return true;
  }
  return false;
}

/** Describes how the call violates the guard; null if it does not. */
async function findViolation(
  call: Call,
  build: (characters: number) => string,
  {
    characters = CHARACTERS,
    measure = measureThread,
    runs = MAX_RUNS,
  }: { characters?: number; measure?: Measure; runs?: number } = {},
): Promise<string | null> {
  for (const small of SMALL) if (await isLinearAt(small, call, build, { characters, measure })) return null;
  const [half, whole] = [build(characters), build(2 * characters)];
  let wholeMs = await measure(call, whole);
  if (wholeMs < FLOOR_MS) return null;
  let halfMs = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run += 1) {
    halfMs = Math.min(halfMs, await measure(call, half));
    if (wholeMs < FLOOR_MS || (wholeMs <= MAX_RATIO * halfMs && wholeMs < MAX_MS)) return null;
    wholeMs = Math.min(wholeMs, await measure(call, whole));
  }
  if (wholeMs < MAX_MS)
    for (let run = 0; run < runs; run += 1)
      // Memory makes single sizes slower, but quadratic code is quadratic at each size: the next doubling tells.
      if ((await measure(call, build(4 * characters))) <= MAX_RATIO * wholeMs) return null;
  return wholeMs <= MAX_RATIO * halfMs && wholeMs < MAX_MS
    ? null
    : `${halfMs.toFixed(0)} ms for ${characters / 1024} KiB, ${wholeMs.toFixed(0)} ms for ${characters / 512} KiB`;
}

describe('code that reads what strangers write', () => {
  test('is registered: each exported function has an adapter or a reason why it needs none', async () => {
    const exported = new Set<string>();
    for (const module of modules)
      for (const [name, value] of Object.entries(await load(module)))
        if (typeof value === 'function') exported.add(`${module} ${name}`);
    const registered = Object.entries(ADAPTERS).flatMap(([module, adapters]) =>
      Object.keys(adapters).map((name) => `${module} ${name}`),
    );
    expect(exported.size).toBeGreaterThan(80);
    expect([...exported].sort()).toEqual([...registered, ...Object.keys(EXEMPT)].sort());
  });

  for (const [module, adapters] of Object.entries(ADAPTERS)) {
    for (const [name, adapt] of Object.entries(adapters)) {
      test(
        `takes linear time: ${module} ${name}`,
        async () => {
          const calls = adapt(await load(module));
          const violations: string[] = [];
          const failedTries = new Map<Call, number>();
          const mayBeQuick = (call: Call) => (failedTries.get(call) ?? 0) < MAX_QUICK_TRIES;
          for (const [index, { name: input, build }] of listHostileInputs(`domain/${module}.ts`).entries()) {
            for (const [place, call] of calls.entries()) {
              if (call.readsLengthAlone && index > 0) continue;
              if (mayBeQuick(call)) {
                if (await isQuick(call, build)) continue;
                failedTries.set(call, (failedTries.get(call) ?? 0) + 1);
              }
              const violation = await findViolation(call, build);
              if (violation) violations.push(`${input} (call ${place + 1}): ${violation}`);
            }
          }
          expect(violations).toEqual([]);
        },
        TEST_TIMEOUT_MS,
      );
    }
  }
});

describe('the guard', () => {
  const quadratic: Call = (text) => /fbl[\w.-]*@/.test(text);
  const repeatedFbl = (characters: number) => 'fbl.'.repeat(characters / 4);

  test('finds quadratic code, also when a capped part of it is linear', async () => {
    // A busy machine may hide quadratic code in one of several tries; it never makes linear code look quadratic.
    let found: string | null = null;
    for (let tries = 0; tries < 5 && !found; tries += 1)
      // It takes a second or more for 128 KiB.
      found = await findViolation(quadratic, repeatedFbl, { characters: CHARACTERS / 4, runs: 2 });
    expect(found).toMatch(/ms for 32 KiB/);
    expect(await findViolation((text) => /fbl[\w.-]{0,64}@/.test(text), repeatedFbl)).toBeNull();
  });

  test('finds quadratic code beside linear code that takes most of the time of small inputs', async () => {
    const findIn = (msOf: (kibibytes: number) => number) =>
      findViolation(() => undefined, 'a'.repeat.bind('a'), {
        measure: async (_call, { length }) => msOf(length / 1024),
      });
    // At 16 KiB a third of the time is quadratic, at 128 KiB four fifths.
    expect(await findIn((size) => size + size ** 2 / 32)).toBe('192 ms for 64 KiB, 640 ms for 128 KiB');
    expect(await findIn((size) => 3 * size)).toBeNull();
  });

  test('derives its inputs from the expressions of a module', () => {
    const source = [
      'const FROM = /\\b(?:fbl[\\w.-]*@|complaints?@)/i;',
      "const WORDS = new RegExp(['undelivered (?:mail|message)'].join('|'));",
      '// const COMMENTED = /ignored/;',
    ].join('\n');
    expect(findExpressions(source)).toEqual([
      '\\b(?:fbl[\\w.-]*@|complaints?@)',
      'undelivered (?:mail|message)',
    ]);
    expect(listUnits('\\b(?:fbl[\\w.-]*@)')).toEqual(expect.arrayContaining(['fbl', 'fbl.', 'fbl ', '@']));
  });
});
