/** What the process ends with, besides 0. A signal ends it with 128 and its number, as in a shell. */
export const EXIT = { api: 1, usage: 2, credential: 3, timedOut: 4, interrupted: 130 } as const;

export interface CliErrorDetails {
  exitCode: number;
  /** Of the service, or one of the CLI's own: `usage`, `no_credential`, `unreachable`, `timed_out`. */
  code: string;
  fix?: string | undefined;
  requestId?: string | undefined;
  status?: number | undefined;
}

/** An error that the person or program at the command line can act on. */
export class CliError extends Error {
  readonly exitCode: number;
  readonly code: string;
  readonly fix: string | undefined;
  readonly requestId: string | undefined;
  readonly status: number | undefined;

  constructor(message: string, { exitCode, code, fix, requestId, status }: CliErrorDetails) {
    super(message);
    this.exitCode = exitCode;
    this.code = code;
    this.fix = fix;
    this.requestId = requestId;
    this.status = status;
  }
}

export const usageError = (message: string, fix?: string): CliError =>
  new CliError(message, { exitCode: EXIT.usage, code: 'usage', fix });

export const credentialError = (message: string, fix: string, code = 'no_credential'): CliError =>
  new CliError(message, { exitCode: EXIT.credential, code, fix });

export const timedOut = (message: string, fix?: string): CliError =>
  new CliError(message, { exitCode: EXIT.timedOut, code: 'timed_out', fix });

export const interrupted = (): CliError =>
  new CliError('Interrupted.', { exitCode: EXIT.interrupted, code: 'interrupted' });
