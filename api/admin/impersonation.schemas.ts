import { type Static, Type } from 'typebox';
import {
  type ImpersonationDetails,
  MAX_IMPERSONATION_MINUTES,
} from '../../domain/impersonation/impersonation.service.ts';
import {
  enumOf,
  id,
  nullableTimestamp,
  orNull,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import { Note } from './note.ts';

export const DEFAULT_MINUTES = 30;
const MAX_OPERATIONS = 500;

export const Impersonate = strictObject(
  {
    reason: {
      ...Note,
      description: 'Why. The owners of the organization get it by email, and both audit logs have it.',
    },
    duration_minutes: Type.Optional(
      orNull(
        Type.Integer({
          minimum: 1,
          maximum: MAX_IMPERSONATION_MINUTES,
          description: `Default: ${DEFAULT_MINUTES}.`,
        }),
      ),
    ),
    write: Type.Optional(
      orNull(
        Type.Boolean({
          description:
            'To change mail and settings of mail; for the staff role admin, within ten minutes of signing in. Default: false.',
        }),
      ),
    ),
  },
  { $id: 'Impersonate', title: 'Impersonate' },
);

export const StartedImpersonationRecord = resource(
  'impersonation',
  {
    id: id('Impersonation id (imp_…).'),
    token: text(64, { description: 'Shown once: `Authorization: Bearer imt_…`.' }),
    expires_at: timestamp(),
  },
  { $id: 'StartedImpersonation', title: 'StartedImpersonation' },
);

export const ImpersonationRecord = resource(
  'impersonation',
  {
    id: id('Impersonation id (imp_…).'),
    org_id: id('Organization id (org_…).'),
    staff_id: id('User id of the staff member (usr_…).'),
    write: Type.Boolean(),
    reason: text(2_000),
    status: enumOf(['active', 'ended', 'expired']),
    expires_at: timestamp(),
    ended_at: nullableTimestamp('When it was ended early.'),
    operations: Type.Array(
      strictObject({
        operation: text(128, { description: 'Operation id of the API, or of a page.' }),
        change: Type.Boolean(),
        calls: Type.Integer({ minimum: 1 }),
      }),
      { maxItems: MAX_OPERATIONS, description: 'What it has called, most frequent first.' },
    ),
    created_at: timestamp(),
  },
  { $id: 'Impersonation', title: 'Impersonation' },
);

export function presentImpersonation({
  impersonation,
  operations,
}: ImpersonationDetails): Static<typeof ImpersonationRecord> {
  const { endedAt, expiresAt } = impersonation;
  return {
    object: 'impersonation',
    id: impersonation.id,
    org_id: impersonation.organizationId,
    staff_id: impersonation.staffId,
    write: impersonation.allowsWrite,
    reason: impersonation.reason,
    status: endedAt !== null ? 'ended' : expiresAt.getTime() <= Date.now() ? 'expired' : 'active',
    expires_at: expiresAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    operations: operations
      .slice(0, MAX_OPERATIONS)
      .map(({ operation, isChange, calls }) => ({ operation, change: isChange, calls })),
    created_at: impersonation.createdAt.toISOString(),
  };
}
