import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { revokeDescendants, revokeKey } from '../api-keys/revoke-keys.ts';
import type { Permission } from '../identity/permissions.ts';
import { isSafeName } from '../identity/safe-name.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';

export const KEY_STATUSES = ['active', 'expired', 'revoked'] as const;
export type KeyStatus = (typeof KEY_STATUSES)[number];

export interface KeyFilter {
  organizationId?: string;
  createdByUserId?: string;
  status?: KeyStatus;
  /** Not used since this time, or never. */
  lastUsedBefore?: Date;
}

export interface AdministeredKey {
  id: string;
  organizationId: string;
  organizationName: string;
  /** Null: every environment, every inbox. */
  environmentId: string | null;
  inboxId: string | null;
  name: string;
  lastFour: string;
  permissions: Permission[];
  allowedCidrs: string[];
  status: KeyStatus;
  createdByKeyId: string | null;
  createdByUserId: string | null;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
  createdAt: Date;
}

export type KeyAdministrationService = ReturnType<typeof createKeyAdministrationService>;

export interface KeyAdministrationOptions {
  database: Database;
  notifications: Pick<NotificationService, 'notifyOwners'>;
}

export function createKeyAdministrationService({ database, notifications }: KeyAdministrationOptions) {
  return {
    list: (staff: StaffScope, filter: KeyFilter, page: PageRequest): Promise<Page<AdministeredKey>> =>
      database.staffTransaction(staff, ({ db }) => findKeys(db, filter, page)),

    /**
     * Takes effect with the key's next request. The owners get an email.
     *
     * @param change.children also revokes the keys that it created, directly or through other keys.
     * @throws AppError `not_found`; `conflict` for a revoked key.
     */
    revoke: (
      staff: StaffScope,
      keyId: string,
      { note, children }: { note: string; children: boolean },
    ): Promise<AdministeredKey> =>
      database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        const { organizationId, name, lastFour } = await readKey(db, keyId);
        if (!(await revokeKey(db, keyId)))
          throw new AppError('conflict', {
            detail: 'The key is already revoked.',
            fix: 'Nothing is left to do.',
          });
        if (children) await revokeDescendants(db, organizationId, keyId);
        await recordStaffAudit(db, staff, {
          action: 'api_key.revoked',
          resourceType: 'api_key',
          resourceId: keyId,
          organizationIds: [organizationId],
          reason: note,
          details: { revoke_children: children },
        });
        await notifications.notifyOwners(transaction, {
          organizationId,
          template: 'api-key-revoked-by-staff',
          params: {
            organizationId,
            keyId,
            // The name of a key must not put a link into an email.
            keyName: isSafeName(name) ? name : 'Key',
            lastFour,
            at: formatUtc(new Date()),
          },
          dedupeKey: `api-key-revoked-by-staff/${keyId}`,
        });
        return readKey(db, keyId);
      }),
  };
}

const STATUS = sql<KeyStatus>`case when api_keys.revoked_at is not null then 'revoked'
  when api_keys.expires_at <= now() then 'expired' else 'active' end`;

const selectKeys = (db: Db) =>
  db
    .selectFrom('api_keys')
    .innerJoin('organizations as o', 'o.id', 'api_keys.org_id')
    .select([
      'api_keys.id',
      'api_keys.org_id as organizationId',
      'o.name as organizationName',
      'api_keys.env_id as environmentId',
      'api_keys.inbox_id as inboxId',
      'api_keys.name',
      'api_keys.last_four as lastFour',
      'api_keys.permissions',
      'api_keys.allowed_cidrs as allowedCidrs',
      STATUS.as('status'),
      'api_keys.created_by_key_id as createdByKeyId',
      'api_keys.created_by_user_id as createdByUserId',
      'api_keys.expires_at as expiresAt',
      'api_keys.revoked_at as revokedAt',
      'api_keys.last_used_at as lastUsedAt',
      'api_keys.created_at as createdAt',
    ]);

function readKey(db: Db, keyId: string): Promise<AdministeredKey> {
  return selectKeys(db)
    .where('api_keys.id', '=', keyId)
    .executeTakeFirstOrThrow(() => notFound('API key', keyId));
}

function findKeys(
  db: Db,
  { organizationId, createdByUserId, status, lastUsedBefore }: KeyFilter,
  page: PageRequest,
): Promise<Page<AdministeredKey>> {
  const keys = selectKeys(db)
    .$if(organizationId !== undefined, (each) => each.where('api_keys.org_id', '=', organizationId ?? ''))
    .$if(createdByUserId !== undefined, (each) =>
      each.where('api_keys.created_by_user_id', '=', createdByUserId ?? ''),
    )
    .$if(status !== undefined, (each) => each.where(STATUS, '=', status ?? 'active'))
    .$if(lastUsedBefore !== undefined, (each) =>
      each.where((eb) =>
        eb.or([
          eb('api_keys.last_used_at', 'is', null),
          eb('api_keys.last_used_at', '<', lastUsedBefore ?? null),
        ]),
      ),
    );
  return findPage(keys, 'api_keys.id', page);
}
