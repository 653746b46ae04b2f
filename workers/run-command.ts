import { InstallationError } from '../platform/installation/installation-error.ts';

/** The main function of a command: an expected failure or a wrong option is one line, any other failure has its stack. Sets the exit code. */
export function runCommand(name: string, main: () => Promise<void>): void {
  Promise.resolve()
    .then(main)
    .catch((error: unknown) => {
      process.stderr.write(`${name} failed: ${describeFailure(error)}\n`);
      process.exitCode = 1;
    });
}

function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof InstallationError || isWrongOption(error)
    ? error.message
    : (error.stack ?? error.message);
}

const isWrongOption = (error: Error & { code?: unknown }): boolean =>
  String(error.code ?? '').startsWith('ERR_PARSE_ARGS');
