/** The dependencies that a factory takes. */
export type OptionsOf<Factory extends (options: never) => unknown> = Parameters<Factory>[0];
