import type * as Globals from '@jest/globals';

/** What `@jest/globals` exports to the file that runs. */
let current: Partial<typeof Globals> = {};

export function setTestGlobals(globals: typeof Globals): void {
  current = globals;
}

/** A module is loaded once for several files, so what it imports refers to the file that runs. */
function delegate<N extends keyof typeof Globals>(name: N): (typeof Globals)[N] {
  const target = (): object => current[name] as object;
  return new Proxy((() => undefined) as unknown as (typeof Globals)[N] & object, {
    apply: (_, receiver, parameters) => Reflect.apply(target() as () => unknown, receiver, parameters),
    get: (_, property) => Reflect.get(target(), property),
  });
}

export const afterAll = delegate('afterAll');
export const afterEach = delegate('afterEach');
export const beforeAll = delegate('beforeAll');
export const beforeEach = delegate('beforeEach');
export const describe = delegate('describe');
export const expect = delegate('expect');
export const it = delegate('it');
export const jest = delegate('jest');
export const test = delegate('test');
