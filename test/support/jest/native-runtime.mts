import { createRequire, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { setTestGlobals } from './test-globals.mts';

const require = createRequire(import.meta.url);
// Its types describe the CommonJS module, whose default export `import` resolves.
const { default: Runtime } = require('jest-runtime') as typeof import('jest-runtime');

const TEST_GLOBALS = new URL('test-globals.mts', import.meta.url).href;
registerHooks({
  resolve: (specifier, context, nextResolve) =>
    nextResolve(specifier === '@jest/globals' ? TEST_GLOBALS : specifier, context),
});

/**
 * Runs test files as Node runs any program: a Jest worker loads each module once for all its files. Jest's own runtime
 * evaluates the modules again for each file, in a context of its own: two seconds of processor time for each file with the
 * API. So modules cannot be mocked, and what a test file changes in one must not matter to the next file.
 */
export default class NativeRuntime extends Runtime {
  override requireModule<T>(from: string, moduleName = from): T {
    // It holds the tests of one file, so that each file needs its own.
    if (moduleName.endsWith('jestAdapterInit.js'))
      delete require.cache[createRequire(from).resolve(moduleName)];
    return createRequire(from)(moduleName) as T;
  }

  override unstable_shouldLoadAsEsm(): boolean {
    return true;
  }

  override async unstable_importModule(file: string): Promise<void> {
    setTestGlobals(this.requireModuleOrMock(file, '@jest/globals'));
    await import(pathToFileURL(file).href);
  }
}
