import type { Readable } from 'node:stream';
import type { Output, OutputStream } from './output.ts';

/** The world around the process. */
export interface Io {
  stdin: Readable & { isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };
  stdout: OutputStream;
  stderr: OutputStream;
  env: NodeJS.ProcessEnv;
}

/** Options of every command. */
export interface GlobalOptions {
  json?: true;
  profile?: string;
  /** Environment id. */
  env?: string;
}

/** What a command runs with. */
export interface Context extends Io {
  output: Output;
  globals: GlobalOptions;
}
