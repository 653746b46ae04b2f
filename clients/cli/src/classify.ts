import { CliError, EXIT } from './cli-error.ts';
import { AgentEmailError, APIError, ConnectionError, TimeoutError } from './sdk.ts';

/** Whatever failed, as an error with an exit code. */
export function classify(error: unknown): CliError {
  const known = findCliError(error);
  if (known) return known;
  if (error instanceof APIError) return fromAnswer(error);
  if (error instanceof TimeoutError) return notInTime(error);
  if (error instanceof ConnectionError || isNetworkError(error)) return unreachable(error as Error);
  if (error instanceof AgentEmailError || isFileError(error)) return failed((error as Error).message);
  return failed(String(error));
}

/** The SDK wraps what `fetch` throws. */
function findCliError(error: unknown): CliError | undefined {
  for (let found = error; found instanceof Error; found = found.cause)
    if (found instanceof CliError) return found;
  return undefined;
}

const CREDENTIAL_CODES = ['unauthenticated', 'session_expired', 'permission_denied'];
/** Other policies refuse what is done, whoever does it. */
const CREDENTIAL_POLICIES = ['require_mfa', 'enforce_sso', 'allowed_cidrs'];

function fromAnswer({ status, code, fix, problem, requestId, message }: APIError): CliError {
  if (status >= 300 && status < 400)
    return new CliError(`The service sent this request on to another address (${status}).`, {
      exitCode: EXIT.api,
      code: 'redirected',
      fix: 'Log in with the address of the service itself: a credential follows no redirect.',
      status,
    });
  const isCredential =
    status === 401 || CREDENTIAL_CODES.includes(code) || CREDENTIAL_POLICIES.includes(problem?.policy ?? '');
  return new CliError(
    problem ? [problem.detail ?? problem.title, ...invalidParts(problem)].join(' ') : message,
    {
      exitCode: isCredential ? EXIT.credential : EXIT.api,
      code: code || 'no_answer_of_the_service',
      fix: fix || (problem ? undefined : 'Check the address: agent-email doctor.'),
      requestId: requestId ?? undefined,
      status,
    },
  );
}

function invalidParts({ errors }: { errors?: unknown }): string[] {
  if (!Array.isArray(errors)) return [];
  return errors.map(({ path, message }: { path?: string; message?: string }) =>
    `${path ?? ''} ${message ?? ''}`.trim(),
  );
}

const notInTime = ({ message }: TimeoutError) =>
  new CliError(message, {
    exitCode: EXIT.timedOut,
    code: 'timed_out',
    fix: 'Run the command again, with a longer --timeout where it has one.',
  });

function unreachable({ message, cause }: Error): CliError {
  const { code } = (cause ?? {}) as NodeJS.ErrnoException;
  const detail = code === undefined || message.includes(code) ? message : `${message} (${code})`;
  return new CliError(detail, {
    exitCode: EXIT.api,
    code: 'unreachable',
    fix: 'Check that the service runs and the address is right: agent-email doctor.',
  });
}

const failed = (message: string) => new CliError(message, { exitCode: EXIT.api, code: 'failed' });

/** As `fetch` throws them. */
const isNetworkError = (error: unknown): boolean =>
  error instanceof TypeError && error.cause instanceof Error
    ? true
    : error instanceof DOMException && error.name === 'TimeoutError';

const isFileError = (error: unknown): boolean =>
  error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
