/**
 * For the environment of a Node process that does not inherit the one of this process: it loads compiled modules, which
 * halves the processor time of a start.
 */
export const COMPILED_MODULES: NodeJS.ProcessEnv = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE };
