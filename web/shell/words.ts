import type { AppError, ErrorCode, FieldError } from '../../platform/errors.ts';

/** What a page says about a rejection: what happened, and what the person can do about it. */
export interface Words {
  text: string;
  /** A sentence, or the text of a link. Undefined if there is nothing to do. */
  remedy?: { text: string; href?: string } | undefined;
}

/** What a person reads at a field of a rejected form; undefined if the field is right. */
export function fieldMessage(problem: AppError, name: string, label: string): string | undefined {
  const found = errorsAt(problem, name)[0];
  return found && (schemaSentence(found) ?? describeField(found, label, adviceOf(problem)));
}

/** The errors of a form that none of its fields shows, for the top of the page. */
export function otherMessages(problem: AppError, shown: ReadonlySet<string>): string[] {
  const others = (problem.errors ?? []).filter(({ path }) => !shown.has(fieldOf(path)));
  return [
    ...new Set(
      others.map((error) => {
        const label = labelOf(fieldOf(error.path));
        const sentence = schemaSentence(error);
        if (sentence === OUT_OF_DATE) return sentence;
        return sentence ? `${label}: ${sentence}` : describeField(error, label, adviceOf(problem));
      }),
    ),
  ];
}

const errorsAt = ({ errors = [] }: AppError, name: string): FieldError[] =>
  errors.filter(({ path }) => fieldOf(path) === name);

/** `/body/to/0/email` belongs to the field `to`. */
const fieldOf = (path: string): string => path.split('/')[2] ?? '';

const labelOf = (field: string): string => {
  const words = field.replaceAll('_', ' ').trim();
  return words === '' ? 'What was sent' : `${words[0]?.toUpperCase()}${words.slice(1)}`;
};

/** What helps with a single error. With several it is not said to which of them it belongs. */
const adviceOf = ({ errors, fix }: AppError): string | undefined =>
  errors?.length === 1 ? sentenceFor(fix) : undefined;

const OUT_OF_DATE = 'The page is out of date. Reload it, and try again.';

/** Sentences for what a schema finds. The other messages are phrases that follow the name of the field. */
const SCHEMA_MESSAGES: readonly (readonly [RegExp, (...parts: string[]) => string])[] = [
  [/^is required(?:,|$)/, () => 'Fill this in.'],
  [/^must not be empty$/, () => 'Fill this in.'],
  [/^must have at least 1 (?:character|field)$/, () => 'Fill this in.'],
  [/^must have at least 1 item$/, () => 'Choose at least one.'],
  [
    /^must have at least (\d+) (\w+)$/,
    (count, unit) => `Use at least ${count} ${UNITS[unit ?? ''] ?? 'of them'}.`,
  ],
  [
    /^must have at most (\d+) (\w+)$/,
    (count, unit) => `Use at most ${count} ${UNITS[unit ?? ''] ?? 'of them'}.`,
  ],
  [/^must be at least (-?[\d.]+)$/, (bound) => `Use ${bound} or more.`],
  [/^must be at most (-?[\d.]+)$/, (bound) => `Use ${bound} or less.`],
  [/^must be [<>]=? (-?[\d.]+)$/, () => 'Use another number.'],
  [/^must be one of /, () => 'Choose one of the options.'],
  [/^must be equal to /, () => 'Choose one of the options.'],
  [/^must be (?:an integer|a number)\b/, () => 'Enter a number.'],
  [/^must be true or false\b/, () => 'Choose one of the options.'],
  [/^must be (?:a string|a list|an object|null)\b/, () => 'This cannot be read. Enter it again.'],
  [/^must be a (?:time with a zone|valid time)\b/, () => 'Enter a date and a time.'],
  [/^is not a valid day$/, () => 'Enter a day that exists.'],
  [/^must match format "email"$/, () => 'Enter an email address, such as ada@example.com.'],
  [/^must match format "uri/, () => 'Enter an address of the web, such as https://example.com/path.'],
  [/^must match format "date/, () => 'Enter a date.'],
  [/^must (?:match|NOT|not match|pass|be valid)\b/i, () => 'This has a form that does not work here.'],
  [/^is not a (?:field|query parameter) of /, () => OUT_OF_DATE],
  [/^must not contain control characters/, () => 'Use one line of plain text.'],
  [/^must give the reason in words$/, () => 'Give the reason in words.'],
];
const UNITS: Record<string, string> = {
  character: 'character',
  characters: 'characters',
  item: 'entry',
  items: 'entries',
};

function schemaSentence({ message }: FieldError): string | undefined {
  for (const [pattern, describe] of SCHEMA_MESSAGES) {
    const match = pattern.exec(message);
    if (match) return describe(...match.slice(1));
  }
  return undefined;
}

function describeField({ path, message }: FieldError, label: string, advice: string | undefined): string {
  const entry = /^\/[^/]+\/[^/]+\/(\d+)/.exec(path)?.[1];
  const name = entry === undefined ? label : `${label}, entry ${Number(entry) + 1}`;
  // A message says what the field is or must be, or is a sentence of its own.
  const isPredicate = /^(?:is|are|must|may|has|have|cannot|needs|contains|repeats|names|belongs|mixes) /.test(
    message,
  );
  const colon = entry !== undefined || !isPredicate ? ':' : '';
  const isSentence = entry === undefined && /^[A-Z].*[.!?]$/.test(message);
  const said = isForPeople(message)
    ? toSentence(isSentence ? message : `${name}${colon} ${message}`)
    : 'This does not work here.';
  return advice === undefined ? said : `${said} ${advice}`;
}

/** What staff read of a conflict that stands beside others, such as why one of many runs was left out. */
export const staffWords = (conflict: string): string => sentenceFor(conflict, true) ?? CODES.conflict.text;

/** What the page says about a rejection as a whole. */
export function pageWords(
  problem: AppError,
  { next, isStaff = false }: { next: string; isStaff?: boolean },
): Words {
  const { code, detail, fix } = problem;
  const byPolicy = policyWords(problem, next);
  if (byPolicy) return byPolicy;
  // What is wrong stands at its field.
  if (problem.errors?.length)
    return { text: 'Something here needs your attention. Nothing has been changed.' };
  const known = CODES[code];
  // Staff enter ids, and read which of them is wrong.
  if (known.always && !(isStaff && code === 'not_found')) return known;
  // The remedies of others lead to pages and people of their organization.
  const remedy = isStaff ? undefined : known.remedy;
  const advice = sentenceFor(fix, isStaff);
  return {
    text: sentenceFor(detail, isStaff) ?? known.text,
    remedy: remedy?.href || advice === undefined ? remedy : { text: advice },
  };
}

/** A policy's refusal offers the way to meet the policy. */
function policyWords({ code, extensions: { policy }, detail }: AppError, next: string): Words | undefined {
  const query = new URLSearchParams({ next }).toString();
  const signInAgain = { text: 'Sign in again', href: `/login?${query}` };
  if (code === 'session_expired')
    return {
      text: isForPeople(detail) ? toSentence(detail) : 'Your session is too old for this.',
      remedy: signInAgain,
    };
  if (code !== 'policy_violation' && !(code === 'conflict' && policy === 'require_mfa')) return undefined;
  switch (policy) {
    case 'require_mfa':
      return {
        text: isForPeople(detail) ? toSentence(detail) : 'This needs a second factor.',
        remedy: { text: 'Set up a second factor', href: '/account#factors' },
      };
    case 'enforce_sso':
      return {
        text: 'This organization opens only through its single sign-on.',
        remedy: { text: 'Sign in with single sign-on', href: `/login/sso?${query}` },
      };
    case 'sso_session':
      return {
        text: 'You are signed in through the single sign-on of one organization, which opens no other one.',
        remedy: { text: 'Sign in another way', href: `/login?${query}` },
      };
    case 'allowed_cidrs':
      return {
        text: 'This organization does not accept you from the network that you are in now.',
        remedy: {
          text: 'Ask an owner or administrator of the organization to allow your address, or use a network that is allowed.',
        },
      };
    default:
      return undefined;
  }
}

interface CodeWords {
  text: string;
  remedy?: { text: string; href?: string };
  /** The detail of the error speaks to programs. */
  always?: true;
}

const RELOAD = { text: 'Reload the page, and try again.' };
const LATER = { text: 'Try again in a few minutes.' };

/** What people read if the words of the error itself are for programs. */
const CODES: Record<ErrorCode, CodeWords> = {
  validation_error: { text: 'Something here does not work as it was entered. Nothing has been changed.' },
  organization_required: {
    text: 'You belong to several organizations.',
    remedy: { text: 'Choose an organization', href: '/organizations' },
    always: true,
  },
  malformed_json: { text: 'What was sent cannot be read.', remedy: RELOAD, always: true },
  invalid_cursor: {
    text: 'This page of the list no longer exists.',
    remedy: { text: 'Go back to the first page of the list.' },
    always: true,
  },
  unauthenticated: {
    text: 'You are not signed in.',
    remedy: { text: 'Sign in', href: '/login' },
    always: true,
  },
  invalid_credentials: { text: 'That is not right. Check what you entered, and try again.' },
  oauth_failed: { text: 'The sign-in with the provider failed.' },
  sso_failed: { text: 'The single sign-on failed.' },
  session_expired: {
    text: 'Your session has ended.',
    remedy: { text: 'Sign in again', href: '/login' },
  },
  permission_denied: {
    text: 'Your role does not allow this.',
    remedy: { text: 'Ask an owner or administrator of the organization.' },
  },
  account_deleted: { text: 'The account was deleted. It can be recovered for 30 days.' },
  organization_deleted: {
    text: 'This organization is closed. An owner can recover it for 30 days.',
    remedy: { text: 'Your organizations', href: '/account#organizations' },
    always: true,
  },
  organization_suspended: {
    text: 'This organization is suspended. You can read and export everything, but nothing can be changed or sent.',
    remedy: { text: 'Its owners got an email about it.' },
    always: true,
  },
  environment_suspended: {
    text: 'This environment is suspended. It can be read, but nothing can be changed or sent.',
    remedy: { text: 'Its owners got an email about it.' },
    always: true,
  },
  inbox_suspended: {
    text: 'This inbox is suspended. It can be read, but nothing can be changed or sent.',
    remedy: { text: 'The owners of the organization got an email about it.' },
    always: true,
  },
  policy_violation: {
    text: 'A policy of the organization does not allow this.',
    remedy: { text: 'Ask an owner or administrator of the organization.' },
  },
  plan_limit_reached: {
    text: 'The plan of the organization does not include more of these.',
    remedy: { text: 'See usage and plan', href: '/usage' },
  },
  switched_off: { text: 'This is switched off for now.', remedy: LATER },
  not_found: {
    text: 'It does not exist, was deleted, or belongs to another organization or environment.',
    always: true,
  },
  feature_disabled: { text: 'This installation of the service does not offer that.', always: true },
  method_not_allowed: { text: 'This cannot be done here.', remedy: RELOAD, always: true },
  request_timeout: { text: 'What you sent did not arrive.', remedy: LATER, always: true },
  sso_link_required: { text: 'Confirm once who you are, to link your account with the single sign-on.' },
  account_exists: { text: 'The address already has an account.' },
  already_exists: { text: 'It already exists.' },
  conflict: { text: 'This does not work in the present state.' },
  request_in_progress: { text: 'The same is already being done.', remedy: LATER, always: true },
  precondition_failed: {
    text: 'It was changed in the meantime, by another person or an agent.',
    remedy: { text: 'Look at what it is now, and decide again.' },
  },
  payload_too_large: { text: 'That is too large.', always: true },
  unsupported_media_type: { text: 'A file of this kind does not work here.', always: true },
  draft_target_not_found: { text: 'The message that the draft answers no longer exists.' },
  no_recipients: {
    text: 'There is no recipient.',
    remedy: { text: 'Enter at least one address.' },
  },
  domain_not_verified: {
    text: 'The domain is not verified yet.',
    remedy: { text: 'See its records', href: '/domains' },
  },
  message_rejected: { text: 'The message was not accepted for sending.' },
  idempotency_key_reused: { text: 'This was already done differently.', remedy: RELOAD, always: true },
  unprocessable: { text: 'This does not work as it was entered.' },
  precondition_required: {
    text: 'It cannot be told which version you have seen.',
    remedy: RELOAD,
    always: true,
  },
  rate_limited: { text: 'That was too often in a short time.', remedy: LATER },
  usage_limit_exceeded: {
    text: 'The organization has reached a limit of its plan.',
    remedy: { text: 'See usage and limits', href: '/usage' },
  },
  internal: {
    text: 'Something went wrong on our side, and was recorded. It is not your fault.',
    remedy: LATER,
    always: true,
  },
  unavailable: { text: 'A part of the service does not respond.', remedy: LATER, always: true },
};

/** The id of a resource, by which staff know it. */
const ID = /\b[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}\b/g;

/** Words of the API: paths, methods, headers, names of fields, ids, and what only programs have. */
const API_WORDS = new RegExp(
  [
    String.raw`/api/v\d|/openapi|/body\b|/query\b|\[\d+\]`,
    String.raw`\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|HTTP|JSON|URI|HEADERS?|regexp?)\b`,
    String.raw`\b[a-z]+(?:_[a-z]+)+\b`,
    ID.source,
    String.raw`\b[xX]-[a-z]+|\b(?:Idempotency-Key|Retry-After|Content-\w+|If-Match|Authorization|Bearer|ETag)\b`,
    String.raw`\b(?:credential|header|parameter|pattern|schema|operation)s?\b|\bAPI key or session\b|\brequest bod|\b(?:repeat|accept) (?:the )?requests?\b`,
    String.raw`\b[45]\d\d\b(?= |$)|\{`,
  ].join('|'),
);

/** Whether a text of an error says what people understand. Errors are written for programs, too. */
export const isForPeople = (text: string): boolean => text.trim() !== '' && !API_WORDS.test(text);

/** An advice ends with the call of the API, if there is one: `Make another member an owner first: PATCH /api/v1/…`. */
const API_CALL = /(?:[:;,]| at| by| with| or| through)? \(?(?:GET|POST|PUT|PATCH|DELETE) \/.*$/s;

/** What only programs read beside words for all: the name of a field, as in `stop requiring it (enforce_sso)`. */
const ASIDE = / \((?:[a-z]+(?:_[a-z]+)+|see Retry-After)\)| or is not accessible to this credential\b/g;

/** A text of an error as a sentence; undefined if it speaks to programs. */
function sentenceFor(text: string, isStaff = false): string | undefined {
  const words = text.replace(API_CALL, '').replaceAll(ASIDE, '');
  return isForPeople(isStaff ? words.replaceAll(ID, '') : words) ? toSentence(words) : undefined;
}

function toSentence(text: string): string {
  const trimmed = text.trim();
  const sentence = `${trimmed[0]?.toUpperCase()}${trimmed.slice(1)}`;
  return /[.!?…”]$/.test(sentence) ? sentence : `${sentence}.`;
}
