import { ERROR_CODES, type ErrorCode } from '../../platform/errors.ts';

/** Explanations of the error codes. The page has an anchor for each code, which the `type` of a problem links to. */
const EXPLANATIONS: Record<ErrorCode, string> = {
  validation_error:
    'A field, parameter or header does not match the schema of the operation. Each entry of <code>errors</code> names one, such as <code>to[0].email</code>, and says what is expected. Unknown fields are rejected, not ignored.',
  organization_required:
    'The person belongs to several organizations. Name one in the header <code>x-org-id</code>.',
  malformed_json: 'The body is not one JSON value in UTF-8.',
  invalid_cursor:
    'A cursor is valid only for the list that returned it, with the same filters and order. Start again without a cursor.',
  unauthenticated:
    'The request has no API key or session, or it is unknown, expired or revoked. The response is the same in each case.',
  invalid_credentials:
    'The password, code or token is wrong, used or expired. The response does not say whether the account exists.',
  oauth_failed:
    'The answer of the OAuth provider is wrong, late, or was used before, or the sign-in was started in another browser. Start again.',
  sso_failed:
    'The identity provider refused, or its answer did not pass the check named in <code>check</code>.',
  session_expired: 'The session has ended, or is too old for the operation. Sign in again.',
  permission_denied: 'The key or role lacks the permission named in <code>permission</code>.',
  account_deleted:
    'The account was deleted, and can be recovered for 30 days: <code>POST /api/v1/user/me/recover</code>. Only someone who has proved their password or another way to sign in gets this answer.',
  organization_deleted:
    'The organization was closed by an owner, who can recover it for 30 days. Until then its keys and sessions can neither read nor change anything.',
  organization_suspended: 'The organization can read but not change anything until it is reinstated.',
  environment_suspended: 'The environment can be read but not changed until it is reinstated.',
  inbox_suspended: 'The inbox can be read but not changed, and cannot send, until it is reinstated.',
  policy_violation:
    'The policy of the organization that <code>policy</code> names does not allow the request.',
  plan_limit_reached:
    'The organization has reached the maximum of the resource named in <code>counter</code>. Delete one, or upgrade.',
  switched_off:
    'The operator of the service has switched it off for now, for everyone; <code>toggle</code> names the switch. Try again later.',
  not_found:
    'The resource does not exist or is outside the organization, environment or inbox of the key. The response does not say which.',
  feature_disabled: 'This installation does not offer the feature.',
  method_not_allowed: 'The path supports other methods; <code>Allow</code> lists them.',
  request_timeout:
    'No byte of the body arrived for 10 seconds. The connection is closed. Repeat the request.',
  sso_link_required:
    'The single sign-on has replaced another one, and does not know the person yet. Link an account with <code>link_token</code> as for <code>account_exists</code>; a person without an account joins at <code>POST /auth/sso/link/join</code>.',
  account_exists:
    'The address of the person has an account here, which is not linked with the provider or single sign-on. Sign in to it as before, and link it; for single sign-on, with <code>link_token</code> at <code>POST /auth/sso/link</code>.',
  already_exists: 'The name, address or key is already taken.',
  conflict: 'The state of the resource does not allow the operation, or it has changed since it was read.',
  precondition_failed: 'The resource changed since it was read: <code>If-Match</code> names another version.',
  precondition_required:
    'A person sends or schedules a draft that no person changed last, under a policy that requires approval, and does not say which version they saw.',
  request_in_progress:
    'A request with the same <code>Idempotency-Key</code> is still running. Repeat it in a moment.',
  payload_too_large: 'Bodies are limited to 1 MiB, or 8 MiB for operations that carry a message.',
  unsupported_media_type:
    'Bodies must be <code>application/json</code> in UTF-8, without a Content-Encoding.',
  draft_target_not_found:
    'The thread or message the draft refers to no longer exists. The draft is not deleted; change it and send it again.',
  no_recipients: 'The message has no recipients in to, cc or bcc.',
  domain_not_verified: 'The organization has not verified the domain.',
  message_rejected:
    'The message was not sent. <code>rejection_reason</code> has the reason. If it was a draft, the draft is not deleted.',
  idempotency_key_reused: 'The key was used for another request. Use a new one for each operation.',
  unprocessable: 'The request is well-formed but cannot be processed.',
  rate_limited:
    'Wait for the number of seconds in <code>Retry-After</code>. The RateLimit headers state how much is left. Open streams and waiting calls, and the bytes of bodies in progress, are limited, too: <code>detail</code> names the limit.',
  usage_limit_exceeded:
    'The counter named in <code>counter</code> has reached a hard limit; monthly counters reset at <code>resets_at</code>. There is no <code>Retry-After</code>, because that may be weeks away.',
  internal: 'An error in the service. It is logged under the <code>request_id</code>.',
  unavailable:
    'The database or another dependency is unavailable. No partial change was made: repeat the request.',
};

/** Renders a page without scripts or external resources. */
export function renderErrorsPage(): string {
  const sections = Object.entries(ERROR_CODES).map(
    ([code, { status, title }]) =>
      `<section id="${code}"><h2>${code} <small>${status}</small></h2><p><b>${title}.</b> ${EXPLANATIONS[code as ErrorCode]}</p></section>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Error codes</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
h2{font:600 1.1rem ui-monospace,monospace;margin:2rem 0 .25rem}small{color:#666;font-weight:400}:target{background:#fff3bf}</style></head>
<body><h1>Error codes</h1><p>Every error is a problem document (RFC 9457): <code>code</code> is stable, <code>detail</code> says what happened,
<code>fix</code> what to do next. Operations are described at <a href="/docs">/docs</a>.</p>
${sections.join('\n')}
</body></html>
`;
}
