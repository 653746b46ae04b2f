/**
 * All error codes of the API (RFC 9457 problem details). Each code has one status and one title, so clients can rely on
 * either.
 */
export const ERROR_CODES = {
  validation_error: { status: 400, title: 'The request is invalid' },
  organization_required: { status: 400, title: 'Name an organization' },
  malformed_json: { status: 400, title: 'The body is not valid JSON' },
  invalid_cursor: { status: 400, title: 'The cursor is invalid' },
  unauthenticated: { status: 401, title: 'Authentication required' },
  invalid_credentials: { status: 401, title: 'The credentials are wrong' },
  oauth_failed: { status: 401, title: 'The sign-in with the provider failed' },
  sso_failed: { status: 401, title: 'The single sign-on failed' },
  session_expired: { status: 401, title: 'The session has ended' },
  permission_denied: { status: 403, title: 'Permission denied' },
  account_deleted: { status: 403, title: 'The account was deleted' },
  organization_deleted: { status: 403, title: 'The organization is closed' },
  organization_suspended: { status: 403, title: 'The organization is suspended' },
  environment_suspended: { status: 403, title: 'The environment is suspended' },
  inbox_suspended: { status: 403, title: 'The inbox is suspended' },
  policy_violation: { status: 403, title: 'A policy of the organization does not allow this' },
  plan_limit_reached: { status: 403, title: 'Plan limit reached' },
  switched_off: { status: 403, title: 'The operator has switched this off' },
  not_found: { status: 404, title: 'Not found' },
  feature_disabled: { status: 404, title: 'The feature is switched off' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  request_timeout: { status: 408, title: 'The body did not arrive' },
  sso_link_required: { status: 409, title: 'The person has to be linked or confirmed as new' },
  account_exists: { status: 409, title: 'The address has an account' },
  already_exists: { status: 409, title: 'The resource already exists' },
  conflict: { status: 409, title: 'The current state does not allow this' },
  request_in_progress: { status: 409, title: 'The same request is still running' },
  precondition_failed: { status: 412, title: 'The resource has another version' },
  payload_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The content type is not supported' },
  draft_target_not_found: { status: 422, title: 'The thread or message of the draft does not exist' },
  no_recipients: { status: 422, title: 'No recipients' },
  domain_not_verified: { status: 422, title: 'The domain is not verified' },
  message_rejected: { status: 422, title: 'The message was rejected' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key belongs to another request' },
  unprocessable: { status: 422, title: 'The request cannot be processed' },
  precondition_required: { status: 428, title: 'Name the version that you have seen' },
  rate_limited: { status: 429, title: 'Too many requests' },
  usage_limit_exceeded: { status: 429, title: 'Usage limit exceeded' },
  internal: { status: 500, title: 'Internal server error' },
  unavailable: { status: 503, title: 'A dependency is unavailable' },
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface FieldError {
  /** JSON Pointer that starts with the part of the request: `/body/to/0/email`. The API returns `to[0].email`. */
  path: string;
  message: string;
}

export interface AppErrorOptions {
  /** What happened, for human readers. Never contains a secret or another tenant's data. */
  detail: string;
  /** What the caller can do next, in one sentence. Agents act on it. */
  fix: string;
  errors?: FieldError[];
  /** Extension members of the problem document (RFC 9457 section 3.2). */
  extensions?: Record<string, string | number | boolean>;
  headers?: Record<string, string>;
  /** The transaction that threw it commits, because the rejection itself must be recorded. */
  commitsTransaction?: boolean;
  cause?: unknown;
}

/** A client must not guess when to repeat what a dependency prevented (RFC 9110 section 10.2.3). */
const RETRY_SOON = { 'retry-after': '5' };

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
    this.headers = { ...(code === 'unavailable' ? RETRY_SOON : {}), ...options.headers };
    this.commitsTransaction = options.commitsTransaction ?? false;
  }
}

/** Resources whose ids callers confuse, by prefix. */
const KINDS: Record<string, string> = {
  org: 'organization',
  env: 'environment',
  inb: 'inbox',
  drf: 'draft',
  msg: 'message',
  thr: 'thread',
  att: 'attachment',
  dom: 'domain',
  evt: 'event',
  whe: 'webhook endpoint',
  whd: 'webhook delivery',
  whj: 'webhook job',
  key: 'API key',
};

/** Also used for another tenant's row, to avoid revealing that it exists. */
export function notFound(what: string, id: string): AppError {
  const kind = KINDS[/^([a-z]{3})_/.exec(id)?.[1] ?? ''];
  const isOfKnownKind = Object.values(KINDS).includes(what);
  if (kind !== undefined && isOfKnownKind && kind !== what)
    return new AppError('not_found', {
      detail: `${id.slice(0, 64)} is the id of ${withArticle(kind)}, not of ${withArticle(what)}.`,
      fix: `Send the id of ${withArticle(what)}.`,
    });
  return new AppError('not_found', {
    detail: `The ${what} ${id.slice(0, 64)} does not exist or is not accessible to this credential.`,
    fix: `Check the id, and that the credential has access to the environment and inbox of the ${what}: GET /api/v1/me shows what it reaches.`,
  });
}

const withArticle = (noun: string): string => `${/^[aeio]/i.test(noun) ? 'an' : 'a'} ${noun}`;

export function invalid(path: string, message: string, fix: string): AppError {
  return new AppError('validation_error', { detail: message, fix, errors: [{ path, message }] });
}
