import { InstallationError } from '../platform/installation/installation-error.ts';

/** The main function of a command: an expected failure is one line, any other has its stack. Sets the exit code. */
export function runCommand(name: string, main: () => Promise<void>): void {
  main().catch((error: unknown) => {
    process.stderr.write(`${name} failed: ${describeFailure(error)}\n`);
    process.exitCode = 1;
  });
}

function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof InstallationError ? error.message : (error.stack ?? error.message);
}
