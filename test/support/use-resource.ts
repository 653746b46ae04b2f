import { afterAll, beforeAll } from '@jest/globals';

/** Stop functions of the resources that run, oldest first. */
const running: (() => Promise<unknown>)[] = [];

/**
 * Starts a resource before the tests of the file or `describe` block that calls it, and stops it after them, newest
 * first.
 *
 * @returns an object that stands for the resource; its members can be used from `beforeAll` on.
 */
export function useResource<T extends object>(
  start: () => T | Promise<T>,
  stop: (resource: T) => Promise<unknown>,
  { timeoutMs }: { timeoutMs?: number } = {},
): T {
  let resource: T | undefined;
  beforeAll(async () => {
    const started = await start();
    resource = started;
    running.push(async () => {
      await stop(started);
      // The worker keeps the module of each test file, and what it refers to.
      resource = undefined;
    });
  }, timeoutMs);
  // Jest runs these hooks in the order of their definition: each stops the newest resource instead of its own.
  afterAll(() => running.pop()?.());
  const member = (name: string | symbol): unknown => {
    if (!resource) throw new Error(`${String(name)} is used before beforeAll or after afterAll`);
    const value: unknown = Reflect.get(resource, name, resource);
    return typeof value === 'function' ? value.bind(resource) : value;
  };
  return new Proxy({} as T, {
    get: (_target, name) => member(name),
    // These two are for `{ ...resource }`.
    ownKeys: () => Reflect.ownKeys(resource ?? {}),
    getOwnPropertyDescriptor: (_target, name) => ({
      configurable: true,
      enumerable: true,
      value: member(name),
    }),
  });
}
