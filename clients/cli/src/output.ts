import type { Writable } from 'node:stream';
import type { CliError } from './cli-error.ts';
import { visible, visibleJson } from './terminal/visible.ts';

export interface OutputStream extends Writable {
  isTTY?: boolean;
  columns?: number;
}

export type Output = ReturnType<typeof createOutput>;

const DEFAULT_WIDTH = 80;

/** Writes what a command answers: for people on a terminal, as JSON for programs, and errors to the other stream. */
export function createOutput({
  stdout,
  stderr,
  json,
}: {
  stdout: OutputStream;
  stderr: OutputStream;
  /** `--json`. */
  json: boolean;
}) {
  const forPeople = stdout.isTTY === true && !json;
  return {
    /** Whether people read the answer. */
    forPeople,
    /** Columns of the terminal. */
    width: stdout.columns || DEFAULT_WIDTH,
    /** Writes a value as JSON, or for people as lines, which are escaped already. */
    answer(value: unknown, lines: () => readonly string[]): void {
      stdout.write(
        forPeople
          ? lines()
              .map((line) => `${line}\n`)
              .join('')
          : `${visibleJson(value, 2)}\n`,
      );
    },
    /** Writes one of many values, as {@link Output.answer} does; JSON stands on one line. */
    item(value: unknown, line: () => string): void {
      stdout.write(`${forPeople ? line() : visibleJson(value)}\n`);
    },
    /** Writes a value alone, whoever reads it. */
    bare(value: string): void {
      stdout.write(`${visible(value)}\n`);
    },
    /** Tells a person something beside the answer. */
    note(text: string): void {
      stderr.write(`${visible(text)}\n`);
    },
    fail(error: CliError): void {
      stderr.write(json || !stderr.isTTY ? `${visibleJson(describe(error))}\n` : linesOf(error));
    },
  };
}

const describe = ({ message, code, fix, requestId, status }: CliError) => ({
  error: { code, message, fix, request_id: requestId, status },
});

function linesOf({ message, code, fix, requestId }: CliError): string {
  const lines = [
    `Error: ${visible(message)} (${visible(code)})`,
    ...(fix === undefined ? [] : [`Fix: ${visible(fix)}`]),
    ...(requestId === undefined ? [] : [`Request: ${visible(requestId)}`]),
  ];
  return lines.map((line) => `${line}\n`).join('');
}
