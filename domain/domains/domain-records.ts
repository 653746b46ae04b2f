import type { DkimKey } from './dkim-key.entity.ts';
import type { Domain } from './domain.entity.ts';
import {
  isDkimRecord,
  isDmarcRecord,
  isMxRecord,
  isOwnershipRecord,
  isSpfRecord,
  type RecordEvaluator,
} from './record-checks.ts';

export type RecordPurpose = 'ownership' | 'spf' | 'dkim' | 'mx' | 'dmarc';

/** A record a domain ought to publish. */
export interface DomainRecord {
  /** Names it among the domain's records; what was observed is kept under it. */
  key: string;
  purpose: RecordPurpose;
  type: 'TXT' | 'MX';
  /** Whole name, without a trailing dot. */
  name: string;
  value: string;
  /** Of an MX; null otherwise. */
  priority: number | null;
  ttl: number;
  /** Without it the domain is not verified. */
  required: boolean;
  evaluate: RecordEvaluator;
}

/** What the records of this installation's domains point to. */
export interface DomainRecordSettings {
  /** Term of the SPF record: `include:bounces.example.net`. */
  spfMechanism: string;
  /** Host that takes inbound mail. */
  mxHost: string;
}

const TTL_SECONDS = 3600;
const MX_PRIORITY = 10;

export const OWNERSHIP_LABEL = '_agent-email-verification';

/** Another key under the same selector is another record: what was seen of the one says nothing of the other. */
export const dkimRecordKey = ({ selector, publicKey }: Pick<DkimKey, 'selector' | 'publicKey'>): string =>
  `dkim:${selector}:${publicKey.slice(60, 76)}`;

/**
 * All records of a domain. Ownership, SPF and the active DKIM key are required. A key that waits to take over is
 * required of nobody but itself; MX is for receiving, DMARC is advised.
 */
export function buildDomainRecords(
  { domainName, ownershipToken }: Pick<Domain, 'domainName' | 'ownershipToken'>,
  keys: Pick<DkimKey, 'selector' | 'publicKey' | 'state'>[],
  { spfMechanism, mxHost }: DomainRecordSettings,
): DomainRecord[] {
  const txt = { type: 'TXT' as const, priority: null, ttl: TTL_SECONDS };
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
