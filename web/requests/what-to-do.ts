import type { ErrorCode } from '../../platform/errors.ts';

/** What a person does about calls that failed with a code. The documents say more about each. */
const REMEDIES: Partial<Record<ErrorCode, string>> = {
  validation_error: 'The program sends something wrong: its log has the field.',
  malformed_json: 'The program sends something that is no JSON.',
  invalid_cursor: 'The program continues a list with other filters: let it start again.',
  unauthenticated: 'The key is unknown, expired or revoked: give the program another one.',
  permission_denied: 'The key lacks a permission: change the key, or let the program do less.',
  organization_suspended: 'The organization is suspended: its owners got an email.',
  environment_suspended: 'The environment is suspended: ask the operator.',
  inbox_suspended: 'The inbox is suspended: ask the operator.',
  policy_violation: 'A policy of the organization forbids it: look at Settings.',
  plan_limit_reached: 'The plan allows no more of these: look at Usage.',
  switched_off: 'The operator has switched this off for now.',
  not_found: 'The id is wrong, or of something deleted, or out of reach of the key.',
  already_exists: 'It is there already: the program can go on with it.',
  conflict: 'The state does not allow this, for example a message that has left.',
  request_in_progress: 'The same call was still running: repeat it a moment later.',
  precondition_failed: 'Someone else changed it meanwhile: read it again first.',
  payload_too_large: 'The message or file is too large: send less, or a link.',
  no_recipients: 'The draft has no recipient.',
  domain_not_verified: 'The domain is not verified: look at Domains for the missing record.',
  message_rejected: 'The send was refused: look at the inbox, lists and caps.',
  idempotency_key_reused: 'The program uses one idempotency key for two different calls.',
  unprocessable: 'The call is right in form, but cannot be done: its answer says why.',
  rate_limited: 'Too many calls in a short time: let the program wait as the answer says.',
  usage_limit_exceeded: 'The month’s limit is used up: look at Usage.',
  internal: 'A fault of the service: repeat the call, and tell the operator its id.',
  unavailable: 'A part of the service was down: repeat the call.',
};

export function whatToDo(code: string | null, status: number): string {
  const remedy = code === null ? undefined : REMEDIES[code as ErrorCode];
  if (remedy) return remedy;
  return status >= 500 ? 'A fault of the service: repeat the call.' : 'The answer of the call says why.';
}
