import { type Static, Type } from 'typebox';
import type { RetentionPolicyDetails } from '../../domain/retention/retention-policy.service.ts';
import { MAX_POSTPONE_DAYS } from '../../workflows/retention/apply-retention.contract.ts';
import { strictObject, nullableTimestamp } from '../schemas.ts';

const MAX_RETENTION_DAYS = 3_650;
const days = (description: string) => Type.Integer({ minimum: 0, maximum: MAX_RETENTION_DAYS, description });

export const RetentionPolicyRecord = strictObject(
  {
    retention_days: days('Messages older than this are deleted. 0: mail is kept for ever.'),
    effective_days: days(
      'What is deleted by now. Another than retention_days only while pending: until then as before, whatever was set.',
    ),
    pending: Type.Boolean({ description: 'A shorter period was set, and does not hold yet.' }),
    first_deletion_at: nullableTimestamp(
      'While pending: nothing is deleted because of it before this time. Deletion begins with the daily run (03:00 UTC) after it.',
    ),
    postponed_until: nullableTimestamp(
      'Nothing at all is deleted before this time; null where nothing is postponed.',
    ),
    updated_at: nullableTimestamp('When somebody last set or postponed it; null where nobody ever did.'),
  },
  { $id: 'RetentionPolicy', title: 'RetentionPolicy' },
);

export const SetRetentionPolicy = strictObject(
  { retention_days: days('Days messages are kept, 1 to 3,650; 0 keeps them for ever.') },
  { $id: 'SetRetentionPolicy', title: 'SetRetentionPolicy' },
);

export const PostponeRetention = strictObject(
  {
    days: Type.Integer({
      minimum: 1,
      maximum: MAX_POSTPONE_DAYS,
      description: 'Counted from the first deletion where none has begun, else from now.',
    }),
  },
  { $id: 'PostponeRetention', title: 'PostponeRetention' },
);

export function presentRetention(facts: RetentionPolicyDetails): Static<typeof RetentionPolicyRecord> {
  const { retentionDays, effectiveDays, firstDeletionAt, postponedUntil, updatedAt } = facts;
  return {
    retention_days: retentionDays,
    effective_days: effectiveDays,
    pending: firstDeletionAt !== null,
    first_deletion_at: firstDeletionAt?.toISOString() ?? null,
    postponed_until: postponedUntil?.toISOString() ?? null,
    updated_at: updatedAt?.toISOString() ?? null,
  };
}
