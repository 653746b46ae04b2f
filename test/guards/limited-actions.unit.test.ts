import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { listSourceFiles } from './import-graph.ts';

const ROOT = resolve(import.meta.dirname, '..', '..');
const read = (file: string) => readFileSync(resolve(ROOT, file), 'utf8');

/** Runs each action 40 times at the same time. */
const PARALLEL_TEST = 'test/people/limited-actions.api.test.ts';
/** They limit the parts of one message. */
const PARSERS = /^domain\/(?:mime|delivery-reports)\//;
/** They limit the size of one value. */
const SIZE = /_(?:CHARACTERS|BYTES|LENGTH|MS|SECONDS|DAYS|OCTETS|DEPTH)$/;

/** Where a program refuses, compares with a maximum, or deletes what is beyond it: errors by code, the others by constant. */
function findLimits(source: string): string[] {
  const found = [
    ...source.matchAll(/new AppError\('(rate_limited|plan_limit_reached|usage_limit_exceeded)'/g),
    ...source.matchAll(/(?<!=)(?:[<>]=?|===) (?:\$\{)?(\w*(?:MAX_|_MAX|_LIMIT)\w*)/g),
    ...source.matchAll(/(?:offset \$\{|\.offset\()(\w+)/g),
    ...source.matchAll(/'[<>]=?', (\w*(?:MAX_|_MAX|_LIMIT)\w*)/g),
  ].map(([, name = '']) => name);
  return [...new Set(found)].filter((name) => !SIZE.test(name));
}

/** Limits of what a caller may do how often, or have how many of, by file: the cases of the parallel test. */
const CASES: Record<string, string | string[]> = {
  'domain/impersonation/impersonation.service.ts MAX_OPEN': 'impersonations',
  'domain/invitations/invitation.service.ts MAX_OPEN': 'open invitations',
  'domain/invitations/invitation.service.ts rate_limited': 'invitations to one address',
  'domain/messages/label.service.ts MAX_MESSAGE_LABELS': 'labels of a message',
  'domain/organizations/environment.service.ts MAX_ENVIRONMENTS': 'environments',
  'domain/people/account.service.ts MAX_CHANGES_PER_HOUR': 'emails to confirm a new address',
  'domain/people/account.service.ts rate_limited': 'emails to confirm a new address',
  'domain/people/deleted-account.ts MAX_EMAILS_PER_HOUR': 'emails to recover an account',
  'domain/people/mfa-enrollments.ts MAX_ENROLLMENTS': 'second factors',
  'domain/people/own-organization.service.ts MAX_OWNED_ORGANIZATIONS': 'organizations of an owner',
  'domain/people/password.service.ts MAX_RESETS_PER_HOUR': 'emails to reset a password',
  'domain/people/pending-sign-ins.ts MAX_FAILURES': 'guesses at the second factor of one sign-in',
  'domain/people/sign-in-throttle.ts rate_limited': 'guesses at a password',
  'domain/people/sign-up.service.ts MAX_EMAILS_PER_HOUR': 'emails to verify a sign-up',
  'domain/people/sign-up.service.ts rate_limited': 'emails to verify a sign-up',
  'domain/sessions/create-session.ts MAX_SESSIONS_PER_USER': 'sessions of a person',
  'domain/sessions/known-devices.ts MAX_DEVICES_PER_PERSON': 'known devices of a person',
  'domain/sessions/known-devices.ts MAX_DEVICE_FAILURES': 'guesses in a known device',
  'domain/sso/key-renewal.ts rate_limited': 'readings of the keys of an identity provider',
  'domain/sso/sso-drafts.ts MAX_CONFIGURATIONS': 'single sign-on configurations',
  'domain/sso/sso-setup-link.service.ts MAX_OPEN': 'open set-up links of single sign-on',
  'domain/sso/sso-setup-link.service.ts rate_limited': 'set-up links to one address',
  'domain/usage/limit-errors.ts plan_limit_reached': ['inboxes of a plan', 'domains of a plan'],
};

/** Limits that another test exceeds at the same time. */
const OTHER_TESTS: Record<string, string> = {
  'api/plugins/access.ts rate_limited': 'test/api/rate-limit.api.test.ts',
  'api/plugins/open-responses.ts rate_limited': 'test/api/open-responses.unit.test.ts',
  'api/plugins/request-bytes.ts rate_limited': 'test/api/request-bytes.api.test.ts',
  'api/plugins/signed-callers.ts MAX_UNPROVEN': 'test/api/signed-callers.unit.test.ts',
  'domain/billing/checkout-sessions.ts MAX_ATTEMPTS': 'test/billing/checkout.api.test.ts',
  'domain/connections/client-adapter.ts MAX_REGISTRATIONS_PER_HOUR':
    'test/connections/registration.api.test.ts',
  'domain/connections/request-adapter.ts MAX_OPEN_REQUESTS': 'test/connections/authorization.api.test.ts',
  'domain/connections/consent.service.ts MAX_CONNECTIONS': 'test/connections/authorization.api.test.ts',
  'domain/identity/password-hash-queue.ts MAX_WAITING_HASHES':
    'test/identity/password-hash-queue.unit.test.ts',
  'domain/identity/password-hash-queue.ts MAX_WAITING_HASHES_PER_NETWORK':
    'test/identity/password-hash-queue.unit.test.ts',
  'domain/identity/password-hash-queue.ts rate_limited': 'test/identity/password-hash-queue.unit.test.ts',
  'domain/usage/limit-errors.ts usage_limit_exceeded': 'test/usage/sending.api.test.ts',
};

const REQUEST = 'of one request';
const RUN = 'of one run of a worker';
const FILE = 'of one file';
/** Limits that no two requests share, or that may be exceeded by a few. */
const REASONS: Record<string, string> = {
  'domain/inbound/unattributed-reports.ts MAX_RETAINED': RUN,
  'web/overview/overview.routes.ts MAX_COUNTED': REQUEST,
  'web/shell/form-with-files.ts MAX_FORM_FILES': REQUEST,
  'web/drafts/recipients.ts MAX_RECIPIENTS': REQUEST,
  'web/staff/resolution-list.ts MAX_LINES': REQUEST,
  'api/messages/content.ts MAX_RECIPIENTS': REQUEST,
  'api/plugins/nearest-operation.ts MAX_DISTANCE': REQUEST,
  'api/plugins/nearest-operation.ts MAX_SEGMENTS': REQUEST,
  'api/plugins/request-log.ts MAX_SEGMENTS': REQUEST,
  'api/plugins/validation.ts MAX_VALUES': REQUEST,
  'domain/announcements/announcement.service.ts MAX_ORGANIZATIONS': REQUEST,
  'domain/attachments/attachment-limits.ts MAX_ATTACHMENTS': REQUEST,
  'domain/billing/stripe-signature.ts MAX_PARTS': REQUEST,
  'domain/connections/client-metadata.ts MAX_REDIRECT_URIS': REQUEST,
  'domain/connections/token-adapter.ts MAX_KEPT':
    'how many tokens are kept: the next one deletes what is beyond it',
  'domain/domains/apply-dns-check.ts MAX_MISSED_CHECKS': 'of one domain, whose row is locked',
  'domain/drafts/text-difference.ts MAX_CELLS': REQUEST,
  'domain/attachments/text/text-collector.ts MAX_NOTES': FILE,
  'domain/attachments/text/zip-parts.ts MAX_ENTRIES': FILE,
  'domain/attachments/text/zip-parts.ts MAX_RATIO': FILE,
  'domain/drafts/text-difference.ts MAX_DIFFERENCE_LINES': REQUEST,
  'domain/events/event-follower.ts MAX_QUEUED': 'of one stream in memory',
  'domain/exports/archive-files.ts MAX_CONCURRENT_READS': RUN,
  'domain/exports/archive-files.ts MAX_BYTES_AHEAD': RUN,
  'domain/exports/read-pages.ts MAX_EMPTY_PARENTS': RUN,
  'domain/impersonation/impersonation-record.ts MAX_RESOURCES':
    'how much is recorded in detail: calls at the same time may record a few more',
  'domain/impersonation/report-end.ts MAX_NAMED_RESOURCES': RUN,
  'domain/inbound/loop-guard.ts MAX_MESSAGES_PER_DIRECTION': 'of one thread, whose row is locked',
  'domain/inbound/raise-alarm.ts MAX_NAMED_ADDRESSES': 'of one message',
  'domain/messages/injection-alarms.ts MAX_LISTED_ALARMS':
    'beyond it an alarm concerns more: messages at the same time may list a few more, and the gate reads twice as many',
  'domain/inbound/unattributed-reports.ts MAX_PER_HOUR':
    'how much is kept for the operator: receipts at the same time, three a process, may add as many',
  'domain/messages/message-ids.ts MAX_CANDIDATES': 'of one message',
  'domain/outbound/outbound-content.ts MAX_REFERENCES': 'of one message',
  'domain/outbound/outbound-content.ts MAX_RECIPIENTS': REQUEST,
  'domain/outbound/transmit-message.ts MAX_SETTLE_TRIES': RUN,
  'domain/people/policy-preview.service.ts MAX_PREVIEWED_MEMBERS': REQUEST,
  'domain/providers/raw-mail.service.ts usage_limit_exceeded': 'says what the counter of usage has decided',
  'domain/refusals/refusal-recorder.ts MAX_COLLECTED': 'of one process in memory',
  'domain/refusals/store-refusals.ts MAX_ROWS_PER_HOUR':
    'how much is recorded in detail: processes at the same time may record a few more',
  'domain/requests/request-recorder.ts MAX_BUFFERED': 'of one process in memory',
  'domain/requests/request-recorder.ts MAX_BUFFERED_PER_ORGANIZATION': 'of one process in memory',
  'domain/sso/saml/idp-metadata.ts MAX_CERTIFICATES': REQUEST,
  'domain/sso/saml/xml.ts MAX_ATTRIBUTES': REQUEST,
  'domain/sso/saml/xml.ts MAX_ELEMENTS': REQUEST,
  'domain/sso/complete-login.ts MAX_ATTEMPTS':
    'how many attempts are shown: the next one deletes what is beyond it',
  'domain/sso/sso-checks.ts MAX_CHECKS': REQUEST,
  'domain/stored-objects/sweep-objects.ts MAX_BATCHES': RUN,
  'domain/messages/search-terms.ts MAX_TERMS': REQUEST,
  'domain/webhooks/probe.service.ts MAX_DUE_BEFORE_RELEASE': RUN,
  'domain/webhooks/release-held-deliveries.ts MAX_RECOVERED_BATCHES': RUN,
  'domain/workflow-runs/list-runs.ts MAX_EXAMINED_RUNS': REQUEST,
  'domain/workflow-runs/staff-job-runner.ts MAX_RUNS': RUN,
};

const limits = listSourceFiles(['api', 'web', 'domain'])
  .filter((file) => !PARSERS.test(file))
  .flatMap((file) => findLimits(read(file)).map((name) => `${file} ${name}`));

test('each limit of the code has a test that exceeds it at the same time, or the reason why it needs none', () => {
  expect(limits.length).toBeGreaterThan(60);
  const listed = [CASES, OTHER_TESTS, REASONS].flatMap(Object.keys);
  expect([...listed].sort()).toEqual([...limits].sort());
});

test('the cases and tests exist', () => {
  const source = read(PARALLEL_TEST);
  const [, actions = ''] = source.split('const ACTIONS');
  const names = [...actions.matchAll(/^ {2}async (?:'([^']+)'|(\w+))\(\)/gm)].map(
    ([, quoted, plain]) => quoted ?? plain,
  );
  expect(names.length).toBeGreaterThan(20);
  expect(
    Object.values(CASES)
      .flat()
      .filter((name) => !names.includes(name)),
  ).toEqual([]);
  expect(Object.values(OTHER_TESTS).filter((file) => !existsSync(resolve(ROOT, file)))).toEqual([]);
});

test.each([
  ["if (waits) throw new AppError('rate_limited', { detail })", 'rate_limited'],
  ['if ((row?.open ?? 0) >= MAX_OPEN)', 'MAX_OPEN'],
  ['if (rows.length === KEY_LIMIT) throw full()', 'KEY_LIMIT'],
  [`where failures < \${MAX_FAILURES}`, 'MAX_FAILURES'],
  [`order by id desc offset \${KEPT}`, 'KEPT'],
  ["query.where('failures', '<', MAX_FAILURES)", 'MAX_FAILURES'],
  ["query.orderBy('id', 'desc').offset(KEPT)", 'KEPT'],
])('the guard finds %s', (source, name) => {
  expect(findLimits(source)).toEqual([name]);
});
