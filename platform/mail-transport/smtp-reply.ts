/** Parsers for the free text of SMTP replies. */

/** Limits stored replies, because a relay may send very long ones. */
export const MAX_RESPONSE_CHARACTERS = 1_000;

/**
 * Returns the enhanced status code (RFC 3463) of a reply; without one, only its class (`5.0.0`).
 * Returns null if there is no reply.
 */
export function parseStatusCode(response: string | undefined): string | null {
  const enhanced = /^([245])\d\d[ -]#?(\1\.\d{1,3}\.\d{1,3})\b/.exec(response ?? '');
  if (enhanced?.[2]) return enhanced[2];
  const basic = /^([245])\d\d\b/.exec(response ?? '');
  return basic ? `${basic[1]}.0.0` : null;
}

/** Most specific form first: each MTA words its queue id differently. */
const QUEUE_ID_PATTERNS = [
  /\bqueued as ([\w.-]{4,128})/i, // Postfix, OpenSMTPD, Haraka
  /\bid=([\w.-]{4,128})/i, // Exim, OpenSMTPD
  /\bInternalId=(\d{4,40})/i, // Exchange
  /^250 (?:2\.0\.0 )?ok:? (\w{16}-\w{8}-\w{4}-\w{4}-\w{4}-\w{12}-\w{6})$/i, // Amazon SES
  /^250 2\.\d\.\d ([\w.-]{8,128}) Message accepted for delivery/i, // Sendmail
  /^250 2\.0\.0 OK +\d+ ([\w.-]{8,128}) - gsmtp/i, // Google
  /^250 (?:2\.\d\.\d )?(?:ok:? )?(?:queued|accepted)[ :]+<?([\w.@-]{4,128})>?/i,
];

/** Returns the relay's queue id of an accepted message, or null if the reply has no known form. */
export function parseQueueId(response: string): string | null {
  for (const form of QUEUE_ID_PATTERNS) {
    const id = form.exec(response)?.[1];
    if (id) return id;
  }
  return null;
}
