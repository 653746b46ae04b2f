import type { AuditLogEntry } from '../../domain/audit/audit-log.service.ts';
import type { Domain, DomainStatus } from '../../domain/domains/domain.entity.ts';
import type { CheckedRecord, RecordPurpose } from '../../domain/domains/domain-records.ts';
import type { Tone } from '../shell/charts.ts';

/** A badge. */
export interface Badge {
  tone: Tone;
  text: string;
}

/** A record as its panel shows it. */
export interface RecordView extends CheckedRecord {
  title: string;
  explanation: string;
  badge: Badge;
  /** What the last check found, in words. */
  finding: string;
}

export const DOMAIN_BADGES: Record<DomainStatus, Badge> = {
  pending: { tone: 'warn', text: 'waiting for its records' },
  verified: { tone: 'good', text: 'verified' },
  failed: { tone: 'bad', text: 'not verified' },
};

const TITLES: Record<RecordPurpose, string> = {
  ownership: 'Ownership',
  spf: 'SPF',
  dkim: 'DKIM',
  mx: 'Incoming mail (MX)',
  dmarc: 'DMARC',
};

const EXPLANATIONS: Record<RecordPurpose, string> = {
  ownership: 'Proves that the domain is yours. Keep it for as long as you use the domain.',
  spf: 'Says that this service may send for the domain. A domain has only one SPF record: if you have one already, add the “include:” to it, before its “all”.',
  dkim: 'The key that signs what you send. It is long: most providers split it by themselves, and the zone file is split already.',
  mx: 'Leads mail to the domain into your inboxes. Leave it out if you only send.',
  dmarc:
    'Tells receivers what to do with mail that only claims to come from the domain. Start with “p=none”; a record of the parent domain counts too.',
};

const KEY_TITLES: Record<NonNullable<CheckedRecord['keyState']>, string> = {
  active: TITLES.dkim,
  pending: 'DKIM, the new key',
  retiring: 'DKIM, the former key',
};

const KEY_EXPLANATIONS: Record<NonNullable<CheckedRecord['keyState']>, string> = {
  active: EXPLANATIONS.dkim,
  pending: 'The key signs as soon as its record is found. Until then the current key signs.',
  retiring: 'No longer signs. Keep the record for a week, for mail that is still on its way.',
};

const INVALID: Record<RecordPurpose, string> = {
  ownership: 'A record has this name, but another value.',
  spf: 'An SPF record exists, but it does not name this service before its “all”, or there is more than one.',
  dkim: 'A record has this name, but not this key. Compare the two: often a part was cut off.',
  mx: 'Mail to the domain goes to other servers.',
  dmarc: 'The DMARC record cannot be read, or there is more than one.',
};

/** @param isChecked whether DNS was asked at all. */
export function describeRecord(record: CheckedRecord, isChecked: boolean): RecordView {
  const { purpose, keyState } = record;
  return {
    ...record,
    title: keyState ? KEY_TITLES[keyState] : TITLES[purpose],
    explanation: keyState ? KEY_EXPLANATIONS[keyState] : EXPLANATIONS[purpose],
    badge: badgeOf(record, isChecked),
    finding: findingOf(record, isChecked),
  };
}

function badgeOf({ status, required, keyState }: CheckedRecord, isChecked: boolean): Badge {
  if (status === 'valid') return { tone: 'good', text: 'found' };
  if (!isChecked) return { tone: 'neutral', text: 'not checked yet' };
  const isNeeded = required || keyState === 'pending';
  const tone = isNeeded ? 'bad' : 'neutral';
  return { tone, text: status === 'invalid' ? 'wrong' : isNeeded ? 'missing' : 'not published' };
}

function findingOf({ status, purpose, required, keyState }: CheckedRecord, isChecked: boolean): string {
  if (!isChecked) return 'The service has not asked DNS yet.';
  if (status === 'valid') return 'Published as it should be.';
  if (status === 'invalid') return INVALID[purpose];
  if (keyState === 'retiring') return 'No longer published.';
  return required || keyState === 'pending'
    ? 'Nothing is published under this name. Add the record at your DNS provider; it may take minutes until it is seen.'
    : 'Nothing is published under this name. The domain works without it.';
}

/** One sentence about what is missing, or why the domain is not verified; null if all is well. */
export function summarize(
  { verificationStatus, statusReason, lastCheckedAt }: Domain,
  records: RecordView[],
): string | null {
  if (lastCheckedAt === null) return 'The service looks for its records within a minute.';
  const failing = records.filter(({ required, status }) => required && status !== 'valid');
  if (verificationStatus === 'failed' && failing.length === 0) return statusReason;
  if (failing.length === 0) return null;
  const names = failing.map(({ title, badge }) => `${title} (${badge.text})`).join(', ');
  const count = records.filter(({ required }) => required).length;
  return `${failing.length} of ${count} required records ${failing.length === 1 ? 'is' : 'are'} not as needed: ${names}.`;
}

const CHANGES: Record<string, string> = {
  'domain.created': 'Added',
  'domain.updated': 'Catch-all inbox changed',
  'domain.dkim_rotated': 'New DKIM key made',
  'domain.dkim_activated': 'New DKIM key in use',
  'domain.verified': 'Verified',
  'domain.failed': 'Verification failed',
};

/** An entry of a domain's history. */
export interface Change {
  at: Date;
  text: string;
  by: string;
  note: string | null;
}

export function describeChange({ action, actorKind, actorName, details, createdAt }: AuditLogEntry): Change {
  const reason = details.status_reason;
  return {
    at: createdAt,
    text: CHANGES[action] ?? action.replace('domain.', '').replaceAll('_', ' '),
    by: actorKind === 'system' ? 'DNS check' : (actorName ?? 'someone who is gone'),
    note: typeof reason === 'string' ? reason : null,
  };
}
