import type { DkimKey, Domain } from './domain.entity.ts';
import {
  isDkimRecord,
  isDmarcRecord,
  isMxRecord,
  isOwnershipRecord,
  isSpfRecord,
  type Observation,
  type RecordEvaluator,
} from './record-checks.ts';

export type RecordPurpose = 'ownership' | 'spf' | 'dkim' | 'mx' | 'dmarc';

/** A DNS record that a domain should publish. */
export interface DomainRecord {
  /** Identifies it among the domain's records; observations are stored under it. */
  key: string;
  purpose: RecordPurpose;
  type: 'TXT' | 'MX';
  /** Fully qualified, without a trailing dot. */
  name: string;
  value: string;
  /** For MX records; null otherwise. */
  priority: number | null;
  ttl: number;
  /** Whether verification requires it. */
  required: boolean;
  /** Of the key that a `dkim` record publishes; null for other records. */
  keyState: DkimKey['state'] | null;
  evaluate: RecordEvaluator;
}

/** A record, and what the last check found under its name. */
export type CheckedRecord = Omit<DomainRecord, 'evaluate'> & Observation;

export const withFindings = (
  { observed }: Pick<Domain, 'observed'>,
  records: readonly DomainRecord[],
): CheckedRecord[] =>
  records.map(({ evaluate: _, ...record }) => ({
    ...record,
    ...(observed[record.key] ?? { status: 'missing', found: null }),
  }));

/** What the records of customer domains point to. */
export interface DomainRecordSettings {
  /** SPF mechanism, such as `include:bounces.example.net`. */
  spfMechanism: string;
  /** Host that receives inbound mail. */
  mxHost: string;
}

const TTL_SECONDS = 3600;
const MX_PRIORITY = 10;

const OWNERSHIP_LABEL = '_agent-email-verification';

/** Includes part of the key, because observations of an old key under the same selector must not apply to a new one. */
export const dkimRecordKey = ({ selector, publicKey }: Pick<DkimKey, 'selector' | 'publicKey'>): string =>
  `dkim:${selector}:${publicKey.slice(60, 76)}`;

/**
 * All records of a domain. Ownership, SPF and the active DKIM key are required. The record of a pending key is not: only
 * the key's own activation waits for it. MX is for receiving, DMARC is recommended.
 */
export function buildDomainRecords(
  { domainName, ownershipToken }: Pick<Domain, 'domainName' | 'ownershipToken'>,
  keys: readonly Pick<DkimKey, 'selector' | 'publicKey' | 'state'>[],
  { spfMechanism, mxHost }: DomainRecordSettings,
): DomainRecord[] {
  const txt = { type: 'TXT' as const, priority: null, ttl: TTL_SECONDS, keyState: null };
  const ownership = `agent-email-verification=${ownershipToken}`;
  return [
    {
      ...txt,
      key: 'ownership',
      purpose: 'ownership',
      name: `${OWNERSHIP_LABEL}.${domainName}`,
      value: ownership,
      required: true,
      evaluate: isOwnershipRecord(ownership),
    },
    {
      ...txt,
      key: 'spf',
      purpose: 'spf',
      name: domainName,
      value: `v=spf1 ${spfMechanism} ~all`,
      required: true,
      evaluate: isSpfRecord(spfMechanism),
    },
    ...keys.map(
      ({ selector, publicKey, state }): DomainRecord => ({
        ...txt,
        key: dkimRecordKey({ selector, publicKey }),
        purpose: 'dkim',
        name: `${selector}._domainkey.${domainName}`,
        value: `v=DKIM1; k=rsa; p=${publicKey}`,
        required: state === 'active',
        keyState: state,
        evaluate: isDkimRecord(publicKey),
      }),
    ),
    {
      key: 'mx',
      purpose: 'mx',
      type: 'MX',
      name: domainName,
      value: mxHost,
      priority: MX_PRIORITY,
      ttl: TTL_SECONDS,
      required: false,
      keyState: null,
      evaluate: isMxRecord(mxHost),
    },
    {
      ...txt,
      key: 'dmarc',
      purpose: 'dmarc',
      name: `_dmarc.${domainName}`,
      value: 'v=DMARC1; p=none',
      required: false,
      evaluate: isDmarcRecord,
    },
  ];
}
