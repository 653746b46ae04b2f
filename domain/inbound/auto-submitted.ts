/**
 * Whether a program sent the message. An agent that replies to it may start a loop.
 *
 * Checks Auto-Submitted other than `no` (RFC 3834), Precedence bulk, junk or list, List-Id (RFC 2919), the null sender
 * (RFC 5321 section 4.5.5), X-Auto-Response-Suppress.
 *
 * @param headers with lower-case names.
 */
export function isAutoSubmitted(headers: Record<string, string>, mailFrom: string): boolean {
  const autoSubmitted = headers['auto-submitted']?.trim().toLowerCase();
  if (autoSubmitted !== undefined && !autoSubmitted.startsWith('no')) return true;
  if (/^(bulk|junk|list)\b/i.test(headers.precedence?.trim() ?? '')) return true;
  return mailFrom === '' || 'list-id' in headers || 'x-auto-response-suppress' in headers;
}
