import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import { joinSql, type Sql } from '../../platform/database/sql.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
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

export interface KeyAdministrationService {
  list(staff: StaffScope, filter: KeyFilter, page: PageRequest): Promise<Page<AdministeredKey>>;
  /**
   * Takes effect with the key's next request. The owners get an email.
   *
   * @param change.children also revokes the keys that it created, and those that they created.
   * @throws AppError `not_found`; `conflict` for a revoked key.
   */
  revoke(
    staff: StaffScope,
    keyId: string,
    change: { note: string; children: boolean },
  ): Promise<AdministeredKey>;
}

export interface KeyAdministrationOptions {
  database: Database;
  notifications: Pick<NotificationService, 'notifyOwners'>;
}

export function createKeyAdministrationService({
  database,
  notifications,
}: KeyAdministrationOptions): KeyAdministrationService {
  return {
    list: (staff, filter, page) =>
      database.staffTransaction(staff, async ({ em }) => {
        const rows = await em.execute<SerializedRow<AdministeredKey>[]>(sql`
          ${SELECT} where ${joinSql(conditions(filter, page), ' and ')}
          order by k.id ${page.order === 'asc' ? sql`asc` : sql`desc`} limit ${page.limit + 1}`);
        return toPage(rows.map(parseKey), page.limit, ({ id }) => [id]);
      }),

    revoke: (staff, keyId, { note, children }) =>
      database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        const { organizationId, name, lastFour } = await readKey(em, keyId);
        if (!(await revokeKey(em, keyId)))
          throw new AppError('conflict', {
            detail: 'The key is revoked already.',
            fix: 'Nothing is left to do.',
          });
        if (children) await revokeDescendants(em, organizationId, keyId);
        await recordStaffAudit(em, staff, {
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
            // The name of a key must not carry a link into an email.
            keyName: isSafeName(name) ? name : 'Key',
            lastFour,
            at: formatUtc(new Date()),
          },
          dedupeKey: `api-key-revoked-by-staff/${keyId}`,
        });
        return readKey(em, keyId);
      }),
  };
}

const STATUS = sql`case when k.revoked_at is not null then 'revoked' when k.expires_at <= now() then 'expired'
  else 'active' end`;
const SELECT = sql`
  select k.id, k.org_id as "organizationId", o.name as "organizationName", k.env_id as "environmentId",
    k.inbox_id as "inboxId", k.name, k.last_four as "lastFour", k.permissions, k.allowed_cidrs as "allowedCidrs",
    ${STATUS} as status, k.created_by_key_id as "createdByKeyId", k.created_by_user_id as "createdByUserId",
    k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.last_used_at as "lastUsedAt",
    k.created_at as "createdAt"
  from api_keys k join organizations o on o.id = k.org_id`;

async function readKey(em: EntityManager, keyId: string): Promise<AdministeredKey> {
  const [row] = await em.execute<SerializedRow<AdministeredKey>[]>(sql`${SELECT} where k.id = ${keyId}`);
  if (!row) throw notFound('API key', keyId);
  return parseKey(row);
}

function conditions(
  { organizationId, createdByUserId, status, lastUsedBefore }: KeyFilter,
  { after: [after] = [], order }: PageRequest,
): Sql[] {
  const all: Sql[] = [sql`true`];
  if (organizationId !== undefined) all.push(sql`k.org_id = ${organizationId}`);
  if (createdByUserId !== undefined) all.push(sql`k.created_by_user_id = ${createdByUserId}`);
  if (status !== undefined) all.push(sql`${STATUS} = ${status}`);
  if (lastUsedBefore) all.push(sql`(k.last_used_at is null or k.last_used_at < ${lastUsedBefore})`);
  if (after !== undefined) all.push(order === 'asc' ? sql`k.id > ${after}` : sql`k.id < ${after}`);
  return all;
}

const parseKey = (row: SerializedRow<AdministeredKey>): AdministeredKey => ({
  ...row,
  expiresAt: parseTimestamp(row.expiresAt),
  revokedAt: parseTimestamp(row.revokedAt),
  lastUsedAt: parseTimestamp(row.lastUsedAt),
  createdAt: new Date(row.createdAt),
});
