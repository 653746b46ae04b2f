/** RFC 5322 section 3.6.8: printable ASCII without the colon. */
const CUSTOM_NAME = /^(?:x-[!-9;-~]{1,74}|list-unsubscribe(?:-post)?)$/i;
const MAX_VALUE_CHARACTERS = 998;

/**
 * Fields that mail services behind a relay interpret as commands, at the operator's expense. `X-Report-Token`
 * attributes delivery reports.
 */
const COMMAND_NAME = /^x-(?:smtpapi$|sg-|ses-|mailgun-|mc-|pm-|mailjet-|mj-|msys-|sib-|report-token$)/i;

/** Whether a field is a command to a mail service. Senders must not set it. */
export function isProviderCommand(name: string): boolean {
  return COMMAND_NAME.test(name);
}

/**
 * Checks a header field that a caller wants to add: `X-*`, or List-Unsubscribe (RFC 2369, RFC 8058). The API and
 * `buildMime` use the same check, so the API accepts only what can be written.
 *
 * @returns an explanation for the caller, or undefined if the field is valid.
 */
export function findCustomHeaderProblem(name: string, value: string): string | undefined {
  if (!CUSTOM_NAME.test(name)) return 'is not a header a caller may set';
  if (isProviderCommand(name)) return 'is a command to a mail service, not a header for recipients';
  if (value.trim() === '') return 'must have a value';
  if (/\p{Cc}|\p{Zl}|\p{Zp}/u.test(value)) return 'must not contain control characters, such as line breaks';
  if (!value.isWellFormed()) return 'must not contain half of a surrogate pair';
  if (value.length > MAX_VALUE_CHARACTERS)
    return `must not be longer than ${MAX_VALUE_CHARACTERS} characters`;
  return undefined;
}
