/**
 * The one error every layer throws when it knows what is wrong (RFC 9457 problem details).
 *
 * The table below is the whole vocabulary: a code has one status and one title, so a client may branch on either.
 */
export const ERROR_CODES = {
  validation_error: { status: 400, title: 'The request is not valid' },
  malformed_json: { status: 400, title: 'The body is not JSON' },
  invalid_cursor: { status: 400, title: 'The cursor is not valid' },
  unauthenticated: { status: 401, title: 'Authentication is required' },
  permission_denied: { status: 403, title: 'The credential lacks a permission' },
  organization_suspended: { status: 403, title: 'The organization is suspended' },
  environment_suspended: { status: 403, title: 'The environment is suspended' },
  inbox_suspended: { status: 403, title: 'The inbox is suspended' },
  plan_limit_reached: { status: 403, title: 'The plan allows no more of these' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  already_exists: { status: 409, title: 'It exists already' },
  conflict: { status: 409, title: 'The state does not allow this' },
  request_in_progress: { status: 409, title: 'The same request is still running' },
  payload_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The content type is not supported' },
  draft_target_not_found: { status: 422, title: 'The thread or message a draft refers to does not exist' },
  no_recipients: { status: 422, title: 'There is nobody to send to' },
  domain_not_verified: { status: 422, title: 'The domain is not verified' },
  message_rejected: { status: 422, title: 'The message was refused before delivery' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key belongs to another request' },
  unprocessable: { status: 422, title: 'The request cannot be carried out' },
  rate_limited: { status: 429, title: 'Too many requests' },
  usage_limit_exceeded: { status: 429, title: 'The usage limit is reached' },
  internal: { status: 500, title: 'Something broke on our side' },
  unavailable: { status: 503, title: 'A dependency is not available' },
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface FieldError {
  /** JSON Pointer into the part of the request named first: `/body/to/0/email`. */
  path: string;
  message: string;
}

export interface AppErrorOptions {
  /** What happened, for a person. Never carries a secret or another tenant's data. */
  detail: string;
  /** One sentence: what the caller can do next. Agents act on it. */
  fix: string;
  errors?: FieldError[];
  /** Members of the problem document beside the standard ones (RFC 9457 section 3.2). */
  extensions?: Record<string, string | number | boolean>;
  headers?: Record<string, string>;
  /** The transaction that threw commits all the same: the refusal itself is a fact to keep. */
  commitsTransaction?: boolean;
  cause?: unknown;
}

export class AppError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly fix: string;
  readonly errors: FieldError[] | undefined;
  readonly extensions: Record<string, string | number | boolean>;
  readonly headers: Record<string, string>;
  readonly commitsTransaction: boolean;

  constructor(code: ErrorCode, options: AppErrorOptions) {
    super(options.detail, { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.status = ERROR_CODES[code].status;
    this.title = ERROR_CODES[code].title;
    this.detail = options.detail;
    this.fix = options.fix;
    this.errors = options.errors;
    this.extensions = options.extensions ?? {};
    this.headers = options.headers ?? {};
    this.commitsTransaction = options.commitsTransaction ?? false;
  }
}

/** Also the answer for another tenant's row: its existence is not ours to tell. */
export function notFound(what: string, id: string): AppError {
  return new AppError('not_found', {
    detail: `There is no ${what} ${id.slice(0, 64)} in reach of this credential.`,
    fix: `Check the id, and that the credential covers the environment and inbox the ${what} belongs to.`,
  });
}

export function invalid(path: string, message: string, fix: string): AppError {
  return new AppError('validation_error', { detail: message, fix, errors: [{ path, message }] });
}
