import { ERROR_CODES, type ErrorCode } from '../../platform/errors.ts';

/** When a code is answered, and what to do about it. The page has a place for each, which problems point to. */
const EXPLANATIONS: Record<ErrorCode, string> = {
  validation_error:
    'A field, parameter or header does not fit the schema of the operation. Each entry of <code>errors</code> names one with a JSON Pointer. Unknown fields are refused, not ignored.',
  malformed_json: 'The body is not one JSON value in UTF-8.',
  invalid_cursor:
    'A cursor holds for the list it came from, with the same filters and order. Start again without one.',
  unauthenticated:
    'The request has no API key, or one that is unknown, expired or revoked. The answer is the same in each case.',
  permission_denied: 'The key lacks the permission named in <code>permission</code>.',
  organization_suspended: 'The organization can read and change nothing until it is reinstated.',
  environment_suspended: 'The environment can be read; nothing in it can change until it is reinstated.',
  inbox_suspended: 'The inbox does not send until it is reinstated.',
  plan_limit_reached:
    'The organization has as many of what <code>counter</code> names as it may have at once. Delete one, or upgrade.',
  not_found:
    'There is no such thing, or it lies outside the organization, environment or inbox of the key. The two are not told apart.',
  method_not_allowed: 'The path exists and serves other methods; <code>Allow</code> names them.',
  already_exists: 'The name, address or key is taken.',
  conflict: 'The thing is in a state that does not allow this, or has changed since it was read.',
  request_in_progress: 'A request with the same <code>Idempotency-Key</code> is running. Repeat in a moment.',
  payload_too_large: 'Bodies are limited to 1 MiB, and to 8 MiB where they carry mail.',
  unsupported_media_type: 'Bodies are <code>application/json</code> in UTF-8, without a Content-Encoding.',
  draft_target_not_found:
    'The thread or message named in the draft is gone. The draft stays; change it and send again.',
  no_recipients: 'Neither to, cc nor bcc names anybody.',
  domain_not_verified: 'The domain is not one this organization may take addresses on.',
  message_rejected: 'Nothing was sent. <code>rejection_reason</code> says why; a draft stays.',
  idempotency_key_reused: 'The key was used for another request. Use a new one for each operation.',
  unprocessable: 'The request is well-formed and cannot be carried out.',
  rate_limited:
    'Wait for the seconds in <code>Retry-After</code>. The RateLimit headers tell how much is left.',
  usage_limit_exceeded:
    'The counter named in <code>counter</code> has reached a hard limit; monthly ones start anew at <code>resets_at</code>. There is no <code>Retry-After</code>: it may be weeks.',
  internal: 'A fault on our side. It is logged under the <code>request_id</code>.',
  unavailable: 'The database or another dependency is down. Nothing was half done: repeat the request.',
};

/** A page without scripts or outside resources. */
export function errorsPage(): string {
  const sections = Object.entries(ERROR_CODES).map(
    ([code, { status, title }]) =>
      `<section id="${code}"><h2>${code} <small>${status}</small></h2><p><b>${title}.</b> ${EXPLANATIONS[code as ErrorCode]}</p></section>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Error codes</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
h2{font:600 1.1rem ui-monospace,monospace;margin:2rem 0 .25rem}small{color:#666;font-weight:400}:target{background:#fff3bf}</style></head>
<body><h1>Error codes</h1><p>Every refusal is a problem document (RFC 9457): <code>code</code> is stable, <code>detail</code> says what happened,
<code>fix</code> what to do next. Operations are described at <a href="/docs">/docs</a>.</p>
${sections.join('\n')}
</body></html>
`;
}
