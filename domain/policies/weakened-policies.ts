import { isRangeWithin } from '../identity/allowed-addresses.ts';
import type { Policies } from './find-policies.ts';
import type { APPROVAL_MODES } from './organization-policies.entity.ts';

/** A policy that protects less than before, by its name in the API. */
export interface WeakenedPolicy {
  policy: string;
  before: string;
  after: string;
}

/** Modes of `require_send_approval`, from weak to strong. */
const APPROVAL_STRENGTH: Record<(typeof APPROVAL_MODES)[number], number> = { off: 0, external: 1, all: 2 };

/** For each policy: whether the second value protects less than the first. */
const IS_WEAKER: { [Name in keyof Policies]: (before: Policies[Name], after: Policies[Name]) => boolean } = {
  requireMfa: (before, after) => before && !after,
  enforceSso: (before, after) => before && !after,
  ssoSatisfiesMfa: (before, after) => !before && after,
  sessionMaxAgeHours: isHigherLimit,
  allowedCidrs: (before, after) =>
    before.length > 0 && (after.length === 0 || after.some((range) => !isRangeWithin(range, before))),
  maxRecipientsPerMessage: isHigherLimit,
  allowedRecipientDomains: (before, after) =>
    before.length > 0 && (after.length === 0 || after.some((domain) => !isCovered(domain, before))),
  blockedRecipientDomains: (before, after) => before.some((domain) => !isCovered(domain, after)),
  dailySendCapPerInbox: isHigherLimit,
  requireSendApproval: (before, after) => APPROVAL_STRENGTH[after] < APPROVAL_STRENGTH[before],
  afterAlarm: (before, after) => before === 'approval' && after === 'none',
  autoSubmittedHeader: (before, after) => before && !after,
  supportAccess: (before, after) => before === 'ask' && after === 'allowed',
  supportAccessUntil: (before, after) => after !== null && (before === null || after > before),
};

/** Finds the policies that a change weakens. The owners get an email about them. */
export function findWeakenedPolicies(before: Policies, after: Policies): WeakenedPolicy[] {
  return (Object.keys(IS_WEAKER) as (keyof Policies)[])
    .filter((name) => isWeaker(name, before, after))
    .map((name) => ({ policy: toApiName(name), before: toText(before[name]), after: toText(after[name]) }));
}

const isWeaker = <Name extends keyof Policies>(name: Name, before: Policies, after: Policies): boolean =>
  IS_WEAKER[name](before[name], after[name]);

/** Null: no limit. */
function isHigherLimit(before: number | null, after: number | null): boolean {
  return before !== null && (after === null || after > before);
}

/** A domain includes its subdomains. */
function isCovered(domain: string, domains: readonly string[]): boolean {
  return domains.some((other) => domain === other || domain.endsWith(`.${other}`));
}

const toApiName = (property: string): string =>
  property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const formatTime = (time: Date): string => `until ${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;

const MAX_SHOWN_ITEMS = 20;

function toText(value: Policies[keyof Policies]): string {
  if (value === null) return 'none';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (value instanceof Date) return formatTime(value);
  if (!Array.isArray(value)) return String(value);
  if (value.length === 0) return 'none';
  const rest = value.length - MAX_SHOWN_ITEMS;
  return value.slice(0, MAX_SHOWN_ITEMS).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
