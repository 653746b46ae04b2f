import { type Command, CommanderError } from 'commander';
import { type CliError, usageError } from './cli-error.ts';
import type { Io } from './context.ts';
import { createOutput } from './output.ts';
import { createProgram } from './program.ts';
import { visibleLines } from './terminal/visible.ts';

/** Runs a command line. @returns the exit code. */
export async function run(parameters: readonly string[], io: Io): Promise<number> {
  const program = createProgram(io);
  prepare(program, io);
  try {
    await program.parseAsync(parameters, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    const failure = error instanceof CommanderError ? misuse(error) : await classifyLater(error);
    createOutput({ ...io, json: program.opts().json === true || parameters.includes('--json') }).fail(
      failure,
    );
    return failure.exitCode;
  }
}

function prepare(command: Command, { stdout, stderr }: Io): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => stdout.write(text),
    // Help after a mistake. The mistake itself is thrown.
    writeErr: (text) => stderr.write(visibleLines(text)),
    outputError: () => undefined,
    getOutHelpWidth: () => stdout.columns ?? 80,
    getErrHelpWidth: () => stderr.columns ?? 80,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
  });
  for (const each of command.commands) prepare(each, { stdout, stderr } as Io);
}

function misuse({ code, message }: CommanderError): CliError {
  if (code === 'commander.help') return usageError('A command is missing.', 'Name one of those above.');
  return usageError(message.replace(/^error: /, ''), 'agent-email --help lists commands and options.');
}

/** The SDK, which knows the errors of the service, is not loaded for mistakes in options. */
async function classifyLater(error: unknown): Promise<CliError> {
  const { classify } = await import('./classify.ts');
  return classify(error);
}
