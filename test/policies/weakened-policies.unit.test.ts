import { describe, expect, test } from '@jest/globals';
import { DEFAULT_POLICIES, type Policies } from '../../domain/policies/find-policies.ts';
import { findWeakenedPolicies } from '../../domain/policies/weakened-policies.ts';

const find = (before: Partial<Policies>, after: Partial<Policies>) =>
  findWeakenedPolicies({ ...DEFAULT_POLICIES, ...before }, { ...DEFAULT_POLICIES, ...after });
const noon = new Date('2026-11-23T12:00:00Z');
const later = new Date('2026-11-23T13:30:00Z');

/** Each change protects less; its reverse protects more. */
const WEAKER: [string, Partial<Policies>, Partial<Policies>, string, string][] = [
  ['require_mfa', { requireMfa: true }, { requireMfa: false }, 'on', 'off'],
  ['enforce_sso', { enforceSso: true }, { enforceSso: false }, 'on', 'off'],
  ['sso_satisfies_mfa', { ssoSatisfiesMfa: false }, { ssoSatisfiesMfa: true }, 'off', 'on'],
  ['session_max_age_hours', { sessionMaxAgeHours: 8 }, { sessionMaxAgeHours: 9 }, '8', '9'],
  ['session_max_age_hours', { sessionMaxAgeHours: 8 }, { sessionMaxAgeHours: null }, '8', 'none'],
  [
    'allowed_cidrs',
    { allowedCidrs: ['192.0.2.0/25'] },
    { allowedCidrs: ['192.0.2.0/24'] },
    '192.0.2.0/25',
    '192.0.2.0/24',
  ],
  ['allowed_cidrs', { allowedCidrs: ['192.0.2.0/25'] }, { allowedCidrs: [] }, '192.0.2.0/25', 'none'],
  ['max_recipients_per_message', { maxRecipientsPerMessage: 5 }, { maxRecipientsPerMessage: 6 }, '5', '6'],
  [
    'allowed_recipient_domains',
    { allowedRecipientDomains: ['mail.example.com'] },
    { allowedRecipientDomains: ['example.com'] },
    'mail.example.com',
    'example.com',
  ],
  [
    'allowed_recipient_domains',
    { allowedRecipientDomains: ['example.com'] },
    { allowedRecipientDomains: ['example.com', 'notexample.com'] },
    'example.com',
    'example.com, notexample.com',
  ],
  ['allowed_recipient_domains', { allowedRecipientDomains: ['example.com'] }, {}, 'example.com', 'none'],
  [
    'blocked_recipient_domains',
    { blockedRecipientDomains: ['example.com'] },
    { blockedRecipientDomains: ['mail.example.com'] },
    'example.com',
    'mail.example.com',
  ],
  ['blocked_recipient_domains', { blockedRecipientDomains: ['example.com'] }, {}, 'example.com', 'none'],
  ['daily_send_cap_per_inbox', { dailySendCapPerInbox: 10 }, {}, '10', 'none'],
  [
    'require_send_approval',
    { requireSendApproval: 'all' },
    { requireSendApproval: 'external' },
    'all',
    'external',
  ],
  [
    'require_send_approval',
    { requireSendApproval: 'external' },
    { requireSendApproval: 'off' },
    'external',
    'off',
  ],
  ['after_alarm', { afterAlarm: 'approval' }, { afterAlarm: 'none' }, 'approval', 'none'],
  ['auto_submitted_header', { autoSubmittedHeader: true }, { autoSubmittedHeader: false }, 'on', 'off'],
  ['support_access', { supportAccess: 'ask' }, { supportAccess: 'allowed' }, 'ask', 'allowed'],
  ['support_access_until', {}, { supportAccessUntil: noon }, 'none', 'until 2026-11-23 12:00 UTC'],
  [
    'support_access_until',
    { supportAccessUntil: noon },
    { supportAccessUntil: later },
    'until 2026-11-23 12:00 UTC',
    'until 2026-11-23 13:30 UTC',
  ],
];

describe('a change of a policy', () => {
  test.each(WEAKER)('weakens %s from %j to %j', (policy, before, after, shownBefore, shownAfter) => {
    expect(find(before, after)).toEqual([{ policy, before: shownBefore, after: shownAfter }]);
  });

  test.each(WEAKER)('does not weaken %s in the other direction', (_policy, after, before) => {
    expect(find(before, after)).toEqual([]);
  });

  test.each(WEAKER)('does not weaken %s that stays at %j', (_policy, before) => {
    expect(find(before, before)).toEqual([]);
  });

  test.each<[string, Partial<Policies>, Partial<Policies>]>([
    [
      'domains below an allowed one',
      { allowedRecipientDomains: ['example.com'] },
      { allowedRecipientDomains: ['mail.example.com'] },
    ],
    [
      'ranges within an allowed one',
      { allowedCidrs: ['192.0.2.0/24'] },
      { allowedCidrs: ['192.0.2.0/25', '192.0.2.128/25'] },
    ],
    ['a higher limit than none', { dailySendCapPerInbox: null }, { dailySendCapPerInbox: 10 }],
    ['support that was allowed before', { supportAccess: 'allowed' }, { supportAccess: 'allowed' }],
  ])('does not weaken by %s', (_name, before, after) => {
    expect(find(before, after)).toEqual([]);
  });
});

test('one range outside of the allowed ones weakens, whatever the others are', () => {
  const before = { allowedCidrs: ['192.0.2.0/24'] };
  const after = { allowedCidrs: ['192.0.2.0/25', '198.51.100.0/24'] };
  expect(find(before, after)).toMatchObject([{ policy: 'allowed_cidrs' }]);
});

test('a change names every policy that it weakens', () => {
  expect(
    find({ requireMfa: true, dailySendCapPerInbox: 5 }, { requireMfa: false, dailySendCapPerInbox: 9 }).map(
      ({ policy }) => policy,
    ),
  ).toEqual(['require_mfa', 'daily_send_cap_per_inbox']);
});

test.each([
  [20, / d19\.test$/],
  [21, / d19\.test and 1 more$/],
])('of %d domains at most twenty are shown', (count, shown) => {
  const domains = Array.from({ length: count }, (_, index) => `d${index}.test`);
  expect(find({ blockedRecipientDomains: domains }, {})[0]?.before).toMatch(shown);
});
