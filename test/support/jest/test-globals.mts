import type * as Globals from '@jest/globals';
import { TIME_FACTOR } from '../time-factor.ts';

/** What `@jest/globals` exports to the file that runs. */
let current: Partial<typeof Globals> = {};

export function setTestGlobals(globals: typeof Globals): void {
  current = globals;
}

type Callable = (...parameters: unknown[]) => unknown;
const isCallable = (value: unknown): value is Callable => typeof value === 'function';

/** Extends the time limits that tests and hooks name after their function: `test(name, run, limit)`, also of `test.each(…)`. */
function extendLimits(target: Callable): Callable {
  return new Proxy(target, {
    apply(_, receiver, parameters: unknown[]) {
      const limit = parameters.at(-1);
      const extended =
        typeof limit === 'number' && isCallable(parameters.at(-2))
          ? [...parameters.slice(0, -1), limit * TIME_FACTOR]
          : parameters;
      const result = Reflect.apply(target, receiver, extended);
      return isCallable(result) ? extendLimits(result) : result;
    },
    get: (_, property) => {
      const value = Reflect.get(target, property);
      return isCallable(value) ? extendLimits(value) : value;
    },
  });
}

/** A module is loaded once for several files, so what it imports refers to the file that runs. */
function delegate<N extends keyof typeof Globals>(
  name: N,
  adapt = (target: object): object => target,
): (typeof Globals)[N] {
  const target = () => adapt(current[name] as object);
  return new Proxy((() => undefined) as unknown as (typeof Globals)[N] & object, {
    apply: (_, receiver, parameters) => Reflect.apply(target() as Callable, receiver, parameters),
    get: (_, property) => Reflect.get(target(), property),
  });
}

const withLimits = (target: object): object => extendLimits(target as Callable);

const withDefaultLimit = (target: object): object => ({
  ...target,
  setTimeout: (limit: number) => (target as typeof Globals.jest).setTimeout(limit * TIME_FACTOR),
});

export const afterAll = delegate('afterAll', withLimits);
export const afterEach = delegate('afterEach', withLimits);
export const beforeAll = delegate('beforeAll', withLimits);
export const beforeEach = delegate('beforeEach', withLimits);
export const describe = delegate('describe');
export const expect = delegate('expect');
export const it = delegate('it', withLimits);
export const jest = delegate('jest', withDefaultLimit);
export const test = delegate('test', withLimits);
