import { type Static, Type } from 'typebox';
import type { RetentionPolicyDetails } from '../../domain/retention/retention-policy.service.ts';
import { MAX_POSTPONE_DAYS } from '../../workflows/retention/apply-retention.contract.ts';
import { minimalOf } from '../minimal-response.ts';
import { nullableTimestamp, resource, strictObject } from '../schemas.ts';

const MAX_RETENTION_DAYS = 3_650;
const days = (description: string) => Type.Integer({ minimum: 0, maximum: MAX_RETENTION_DAYS, description });

export const RetentionPolicyRecord = resource(
  'retention_policy',
  {
    retention_days: days('Messages older than this are deleted. 0: messages are kept forever.'),
    effective_days: days('The period in effect. Differs from retention_days only while pending.'),
    pending: Type.Boolean({ description: 'A shorter period was set and has not taken effect yet.' }),
    first_deletion_at: nullableTimestamp(
      'While pending: the new period deletes nothing before this time. Deletion starts with the next daily run (03:00 UTC) after it.',
    ),
    postponed_until: nullableTimestamp(
      'Nothing is deleted before this time; null if deletion is not postponed.',
    ),
    updated_at: nullableTimestamp('When the policy was last set or postponed; null if never.'),
  },
  { $id: 'RetentionPolicy', title: 'RetentionPolicy' },
);

export const MinimalRetentionPolicy = minimalOf(RetentionPolicyRecord, ['updated_at']);
/** Spread into the config of changes that return the policy. */
export const RETENTION_POLICY_RESPONSE = {
  readPermission: 'inboxes:read',
  minimalResponse: MinimalRetentionPolicy,
} as const;

export const SetRetentionPolicy = strictObject(
  { retention_days: days('Days messages are kept, 1 to 3,650; 0 keeps them forever.') },
  { $id: 'SetRetentionPolicy', title: 'SetRetentionPolicy' },
);

export const PostponeRetention = strictObject(
  {
    days: Type.Integer({
      minimum: 1,
      maximum: MAX_POSTPONE_DAYS,
      description: 'Counted from now, or from the first deletion if none has happened yet.',
    }),
  },
  { $id: 'PostponeRetention', title: 'PostponeRetention' },
);

export function presentRetention(details: RetentionPolicyDetails): Static<typeof RetentionPolicyRecord> {
  const { retentionDays, effectiveDays, firstDeletionAt, postponedUntil, updatedAt } = details;
  return {
    object: 'retention_policy',
    retention_days: retentionDays,
    effective_days: effectiveDays,
    pending: firstDeletionAt !== null,
    first_deletion_at: firstDeletionAt?.toISOString() ?? null,
    postponed_until: postponedUntil?.toISOString() ?? null,
    updated_at: updatedAt?.toISOString() ?? null,
  };
}
