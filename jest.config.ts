import type { Config } from 'jest';
import { TIME_FACTOR } from './test/support/time-factor.ts';

/**
 * One Jest project per tier, selected by a file's suffix. Jest runs a project's set-up only if one of its tests is
 * selected, so unit tests start no server.
 */
const tier = (suffix: string, needs?: string): NonNullable<Config['projects']>[number] => ({
  displayName: suffix,
  testMatch: [`<rootDir>/test/**/*.${suffix}.test.ts`],
  testEnvironment: '<rootDir>/test/support/jest/native-environment.mts',
  runtime: '<rootDir>/test/support/jest/native-runtime.mts',
  injectGlobals: false,
  transform: {},
  ...(needs
    ? {
        // `.mts`: loaded by Node itself. Jest would turn the `import()` of a `.ts` file into `require()`.
        globalSetup: `<rootDir>/test/support/${needs}.mts`,
        globalTeardown: `<rootDir>/test/support/${needs.replace('start', 'stop')}.mts`,
      }
    : {}),
});

const config: Config = {
  projects: [tier('unit'), tier('api', 'start-database'), tier('workflow'), tier('e2e', 'start-service')],
  reporters: ['<rootDir>/test/support/jest/reporter.mts', 'summary'],
  testTimeout: 60_000 * TIME_FACTOR,
  // Five for two processors, because many files wait (see the sequencer): with four, a tenth of the processors' time was idle.
  maxWorkers: 5,
  testSequencer: '<rootDir>/test/support/test-sequencer.mts',
  // A worker that keeps more than this is replaced, before garbage collection slows it. The next one loads and compiles all
  // modules again, so this is far above what the heap grows to between two collections.
  workerIdleMemoryLimit: '2GB',
};

export default config;
