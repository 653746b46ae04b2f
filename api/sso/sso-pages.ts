import type { FastifyReply, FastifyRequest } from 'fastify';
import type { SsoCheck } from '../../domain/sso/sso-checks.ts';
import type { AppError } from '../../platform/errors.ts';

/** The pages have no script. A form posts to this service alone. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const STYLE = `body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem;color-scheme:light dark}
small{opacity:.75}li{margin:.25rem 0}`;

/** Whether the client is a program. A browser gets a redirect or a page instead of JSON. */
export function wantsJson({ headers }: FastifyRequest): boolean {
  return /\bapplication\/(?:problem\+)?json\b/.test(
    `${headers.accept ?? ''} ${headers['content-type'] ?? ''}`,
  );
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** @param body HTML. */
export function renderSsoPage(reply: FastifyReply, title: string, body: string): string {
  reply.header('content-security-policy', PAGE_POLICY).type('text/html; charset=utf-8');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><main><h1>${escapeHtml(title)}</h1>${body}</main></body></html>
`;
}

export function renderProblemPage(
  reply: FastifyReply,
  { title, detail, fix, status, headers }: AppError,
  id: string,
): string {
  reply.code(status).headers(headers);
  return renderSsoPage(
    reply,
    title,
    `<p>${escapeHtml(detail)}</p><p>${escapeHtml(fix)}</p><p><small>Request ${escapeHtml(id)}</small></p>`,
  );
}

export function renderTestedPage(
  reply: FastifyReply,
  { checks, redirectTo }: { checks: readonly SsoCheck[]; redirectTo: string },
): string {
  const items = checks.map(
    ({ name, seen }) => `<li>✓ ${escapeHtml(name)}${seen === null ? '' : `: ${escapeHtml(seen)}`}</li>`,
  );
  return renderSsoPage(
    reply,
    'The test passed',
    `<p>The configuration can be activated.</p><ul>${items.join('')}</ul><p><a href="${escapeHtml(redirectTo)}">Continue</a></p>`,
  );
}

/** Asks for consent to a login that this browser did not begin. */
export function renderConfirmPage(
  reply: FastifyReply,
  {
    organizationName,
    email,
    confirmToken,
  }: { organizationName: string; email: string; confirmToken: string },
): string {
  return renderSsoPage(
    reply,
    `Sign in to ${organizationName}?`,
    `<p>You will be signed in to ${escapeHtml(organizationName)} as <strong>${escapeHtml(email)}</strong>.</p>
<form method="post" action="/api/v1/auth/sso/saml/confirm">
<input type="hidden" name="confirm_token" value="${escapeHtml(confirmToken)}"><button>Sign in</button></form>
<p><small>If this is not your address, close this page.</small></p>`,
  );
}
