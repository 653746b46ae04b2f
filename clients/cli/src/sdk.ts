/** The SDK, which the build puts into the program. */
export * from '../../typescript/src/index.ts';
