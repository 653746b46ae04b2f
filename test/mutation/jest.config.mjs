/**
 * Jest's own runtime, which loads modules again for each mutant: a mutant of a constant takes effect only then. That of
 * the other tests (`test/support/jest`) loads a module once. `run.ts` adds the tests.
 */
export default {
  rootDir: '../..',
  testEnvironment: 'node',
  injectGlobals: false,
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '<rootDir>/test/mutation/strip-types.mjs' },
};
