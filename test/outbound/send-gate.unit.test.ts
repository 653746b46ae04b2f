import { describe, expect, test } from '@jest/globals';
import type { ListMatch } from '../../domain/deliverability/list-match.ts';
import {
  findRefusal,
  findSuppressedRecipients,
  type GateInput,
  isHeld,
  toRefusalError,
} from '../../domain/outbound/send-gate.ts';

type Recipient = GateInput['recipients'][number];
const recipient = (email: string, rest: Partial<Recipient> = {}): Recipient => ({
  email,
  suppression: null,
  listMatches: [],
  ...rest,
});
const suppressed = (email: string) =>
  recipient(email, { suppression: { origin: 'bounce', status: '5.1.1' } });
const match = (effect: ListMatch['effect'], scope: ListMatch['scope']): ListMatch => ({
  entry: 'example.com',
  effect,
  scope,
  authenticated: false,
});

/** A message that may be sent. */
const OPEN: GateInput = {
  isSwitchedOff: false,
  organization: { status: 'active' },
  environment: { status: 'active' },
  suspendedForAbuse: false,
  recipientCount: 2,
  recipients: [],
  thread: null,
  policies: {
    maxRecipientsPerMessage: null,
    dailySendCapPerInbox: null,
    autoSubmittedHeader: true,
    demandingAlarm: null,
    recipientViolations: [],
    unapprovedRecipients: 0,
  },
  inbox: {
    status: 'active',
    sendPaused: false,
    sendPausedReason: null,
    sendPausedByKind: null,
    deleted: false,
    domainVerified: true,
  },
};
const inbox = (change: Partial<GateInput['inbox']>) => ({ inbox: { ...OPEN.inbox, ...change } });
const policies = (change: Partial<GateInput['policies']>) => ({ policies: { ...OPEN.policies, ...change } });

describe('a message may be sent', () => {
  test.each<[string, Partial<GateInput>]>([
    ['with nothing against it', {}],
    ['in a thread that is not paused', { thread: { isPaused: false, pausedUntil: null } }],
    ['to as many recipients as the organization allows', policies({ maxRecipientsPerMessage: 2 })],
    ['to recipients of whom one is suppressed', { recipients: [suppressed('a@example.com')] }],
    [
      'to a recipient whom a narrower scope allows',
      {
        recipients: [
          recipient('a@example.com', {
            listMatches: [match('block', 'organization'), match('allow', 'inbox')],
          }),
        ],
      },
    ],
  ])('%s', (_name, change) => expect(findRefusal({ ...OPEN, ...change })).toBeNull());
});

describe('the gate refuses', () => {
  test.each<[string, Partial<GateInput>, object]>([
    [
      'a closed organization',
      { organization: { status: 'deleted' } },
      { check: 'organization_open', reason: 'account_paused', code: 'organization_deleted' },
    ],
    [
      'a suspended organization',
      { organization: { status: 'suspended' } },
      { check: 'organization_active', reason: 'account_paused', code: 'organization_suspended' },
    ],
    [
      'a suspended environment',
      { environment: { status: 'suspended' } },
      { check: 'environment_active', reason: 'account_paused', code: 'environment_suspended' },
    ],
    [
      'a suspended inbox',
      inbox({ status: 'suspended' }),
      { check: 'inbox_active', reason: 'account_paused', code: 'inbox_suspended' },
    ],
    [
      'a deleted inbox',
      inbox({ deleted: true }),
      { check: 'inbox_active', reason: 'account_paused', code: 'inbox_suspended' },
    ],
    [
      'a domain that is no longer verified',
      inbox({ domainVerified: false }),
      { check: 'domain_verified', reason: 'account_paused', code: 'domain_not_verified' },
    ],
    [
      'an inbox whose sending is paused',
      inbox({ sendPaused: true, sendPausedReason: 'too many bounces' }),
      {
        check: 'sending_not_paused',
        reason: 'account_paused',
        code: 'message_rejected',
        detail: expect.stringContaining('too many bounces'),
      },
    ],
    [
      'a recipient on a block list, also the second one',
      {
        recipients: [
          recipient('a@example.com', { listMatches: [match('allow', 'inbox')] }),
          recipient('b@example.com', { listMatches: [match('block', 'environment')] }),
        ],
      },
      {
        check: 'recipients_not_blocked',
        reason: 'blocked_recipient',
        code: 'message_rejected',
        detail: expect.stringContaining('b@example.com'),
      },
    ],
    [
      'a recipient in a domain that a policy blocks',
      policies({ recipientViolations: [{ email: 'a@example.com', policy: 'blocked_recipient_domains' }] }),
      {
        check: 'recipient_domains_allowed',
        reason: 'blocked_recipient',
        code: 'message_rejected',
        policy: 'blocked_recipient_domains',
      },
    ],
    [
      'a recipient in a domain that a policy does not list',
      policies({ recipientViolations: [{ email: 'a@example.com', policy: 'allowed_recipient_domains' }] }),
      {
        check: 'recipient_domains_allowed',
        reason: 'blocked_recipient',
        code: 'message_rejected',
        policy: 'allowed_recipient_domains',
      },
    ],
    [
      'more recipients than the organization allows',
      policies({ maxRecipientsPerMessage: 1 }),
      {
        check: 'recipient_count_allowed',
        reason: 'blocked_recipient',
        code: 'message_rejected',
        policy: 'max_recipients_per_message',
      },
    ],
    [
      'a message all of whose recipients are suppressed',
      { recipients: [suppressed('a@example.com'), suppressed('b@example.com')] },
      {
        check: 'some_recipient_not_suppressed',
        reason: 'blocked_recipient',
        code: 'message_rejected',
        detail: expect.stringContaining('a@example.com (bounce), b@example.com (bounce)'),
      },
    ],
    [
      'a thread in which two programs answer each other',
      { thread: { isPaused: true, pausedUntil: new Date('2026-11-23T12:00:00Z') } },
      {
        check: 'thread_not_looping',
        reason: 'rate_limited',
        code: 'message_rejected',
        detail: expect.stringContaining('2026-11-23T12:00'),
      },
    ],
  ])('%s', (_name, change, refusal) => {
    const found = findRefusal({ ...OPEN, ...change });
    expect({ policy: undefined, ...found }).toMatchObject({ policy: undefined, ...refusal });
    expect(found?.fix).not.toBe('');
  });

  test('with the first reason, where several apply', () => {
    const input = {
      ...OPEN,
      ...inbox({ status: 'suspended' }),
      organization: { status: 'deleted' as const },
    };
    expect(findRefusal(input)?.check).toBe('organization_open');
  });

  test('and names at most five of many suppressed recipients', () => {
    const name = (count: number) => {
      const recipients = Array.from({ length: count }, (_, index) => suppressed(`r${index}@example.com`));
      return findRefusal({ ...OPEN, recipients, recipientCount: count })?.detail ?? '';
    };
    expect(name(5).match(/@/g)).toHaveLength(5);
    expect(name(5)).not.toContain('more');
    expect(name(7).match(/@/g)).toHaveLength(5);
    expect(name(7)).toContain(' and 2 more');
  });
});

describe('a suspension', () => {
  const held = { organization: OPEN.organization, environment: OPEN.environment, inbox: OPEN.inbox };
  test.each([
    ['holds nothing where nothing is suspended', {}, false],
    ['of the organization holds', { organization: { status: 'suspended' as const } }, true],
    ['by closing the organization holds', { organization: { status: 'deleted' as const } }, true],
    ['of the environment holds', { environment: { status: 'suspended' as const } }, true],
    ['of the inbox holds', inbox({ status: 'suspended' }), true],
    ['of a deleted inbox does not hold', inbox({ status: 'suspended', deleted: true }), false],
    ['for abuse does not hold', { ...inbox({ status: 'suspended' }), suspendedForAbuse: true }, false],
  ])('%s', (_name, change, expected) => {
    expect(isHeld({ ...held, suspendedForAbuse: false, ...change })).toBe(expected);
  });
});

test('dispatch skips only recipients with a suppression', () => {
  const recipients = [
    suppressed('a@example.com'),
    recipient('b@example.com', { listMatches: [match('block', 'inbox')] }),
  ];
  expect(findSuppressedRecipients({ recipients }).map(({ email }) => email)).toEqual(['a@example.com']);
});

describe('the error of a refusal', () => {
  const error = (policy?: string) =>
    toRefusalError({
      check: 'inbox_active',
      reason: 'account_paused',
      code: 'inbox_suspended',
      detail: 'Why.',
      fix: 'What to do.',
      ...(policy === undefined ? {} : { policy }),
    });

  test('commits the transaction, in which the rejection is recorded', () => {
    expect(error()).toMatchObject({
      code: 'inbox_suspended',
      detail: 'Why.',
      fix: 'What to do.',
      commitsTransaction: true,
    });
  });

  test('names the reason, and the policy if one refused', () => {
    expect(error().extensions).toEqual({ rejection_reason: 'account_paused' });
    expect(error('allowed_recipient_domains').extensions).toEqual({
      rejection_reason: 'account_paused',
      policy: 'allowed_recipient_domains',
    });
  });
});
