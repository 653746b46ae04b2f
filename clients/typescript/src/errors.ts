import type { ErrorCode } from './generated/errors.ts';
import type { Problem } from './generated/types.ts';

/** Every error of this package, but the reason of a signal that you abort, and TypeErrors of arguments that cannot be right. */
export class AgentEmailError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No answer came: the connection failed or broke, or what came was no answer of the service. */
export class ConnectionError extends AgentEmailError {}

/** A request took longer than `timeoutMs`, or what was waited for did not happen in time. */
export class TimeoutError extends AgentEmailError {}

/** A webhook whose signature is not that of the service, or is too old. Answer it with 400. */
export class WebhookVerificationError extends AgentEmailError {}

/**
 * The service refused the request. There is a class for each code, such as `NotFoundError`; a code that this version does
 * not know is an `APIError` with that code.
 */
export class APIError extends AgentEmailError {
  readonly status: number;
  /** Does not change between versions: branch on it. Empty if the answer was none of the service, but of a proxy. */
  readonly code: ErrorCode | (string & {});
  /** What to do next. */
  readonly fix: string;
  /** Give it to the operator of the service. */
  readonly requestId: string | null;
  /** The whole answer (RFC 9457), with fields that only some codes have, such as `errors`, `permission` or `resets_at`. */
  readonly problem: (Problem & Record<string, unknown>) | null;
  readonly headers: Headers;

  constructor({ response, problem, text }: { response: Response; problem: Problem | null; text: string }) {
    super(
      problem ? describe(problem) : `The service answered ${response.status}. ${text.slice(0, 500)}`.trim(),
    );
    this.status = response.status;
    this.code = problem?.code ?? '';
    this.fix = problem?.fix ?? '';
    this.requestId = problem?.request_id ?? response.headers.get('x-request-id');
    this.problem = problem as APIError['problem'];
    this.headers = response.headers;
  }
}

const describe = ({ detail, title, fix, code, request_id }: Problem): string =>
  `${[detail ?? title, fix].filter(Boolean).join(' ')} (${code}, ${request_id})`;
