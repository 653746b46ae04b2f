import { timingSafeEqual } from 'node:crypto';
import { randomBase62, sha256 } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requirePermission, type Scope } from '../identity/scope.ts';
import { findActiveInbox, findInbox, type InboxRow } from './find-inbox.ts';
import { InboxEntity } from './inbox.entity.ts';

export interface InboxCredentials {
  /** The inbox's address. */
  username: string;
  /** Null until a password has been created. */
  rotatedAt: Date | null;
}

/** An inbox authenticated by its SMTP password, and when that password was created. */
export interface AuthenticatedInbox {
  inbox: InboxRow;
  rotatedAt: Date;
}

export type CredentialService = ReturnType<typeof createCredentialService>;

/** 190 bits in base62. */
const PASSWORD_LENGTH = 32;

export function createCredentialService({ database }: { database: Database }) {
  return {
    /** @throws AppError `not_found`. */
    get: (scope: Scope, inboxId: string): Promise<InboxCredentials> =>
      database.read(scope, async ({ db }) => {
        const inbox = await findInbox(db, scope, inboxId);
        const credential = await db
          .selectFrom('inbox_credentials')
          .select('rotated_at as rotatedAt')
          .where('inbox_id', '=', inboxId)
          .executeTakeFirst();
        return { username: inbox.email, rotatedAt: credential?.rotatedAt ?? null };
      }),

    /**
     * Creates a new password, which replaces the previous one immediately and is not returned again.
     *
     * @throws AppError `not_found`, `inbox_suspended`; `permission_denied` without `messages:send`, which the password
     * grants.
     */
    rotate: (scope: Scope, inboxId: string): Promise<InboxCredentials & { password: string }> =>
      database.transaction(scope, async ({ db }) => {
        requirePermission(scope, 'messages:send');
        const inbox = await findActiveInbox(db, scope, inboxId);
        const password = randomBase62(PASSWORD_LENGTH);
        const rotatedAt = new Date();
        const credential = { password_hash: sha256(password), rotated_at: rotatedAt };
        await db
          .insertInto('inbox_credentials')
          .values({ inbox_id: inbox.id, org_id: inbox.organizationId, ...credential })
          .onConflict((conflict) => conflict.column('inbox_id').doUpdateSet(credential))
          .execute();
        await recordAudit(db, scope, {
          action: 'inbox.credentials_rotated',
          resourceType: 'inbox',
          resourceId: inbox.id,
        });
        return { username: inbox.email, rotatedAt, password };
      }),

    /** Returns null if the username or password is wrong. The comparison takes the same time in both cases. */
    async authenticate(username: string, password: string): Promise<AuthenticatedInbox | null> {
      const found = await database.db
        .selectFrom('inboxes')
        .leftJoin('inbox_credentials', 'inbox_credentials.inbox_id', 'inboxes.id')
        .select(columnsOf(InboxEntity))
        .select([
          'inbox_credentials.password_hash as passwordHash',
          'inbox_credentials.rotated_at as rotatedAt',
        ])
        .where('inboxes.email', '=', storableText(username).toLowerCase())
        .where('inboxes.deleted_at', 'is', null)
        .executeTakeFirst();
      const matches = timingSafeEqual(sha256(password), found?.passwordHash ?? NO_PASSWORD_HASH);
      if (!found?.rotatedAt || !matches) return null;
      const { passwordHash, rotatedAt, ...inbox } = found;
      return { inbox, rotatedAt };
    },
  };
}

/** Compared if there is no credential, to take the same time. No password has this hash. */
const NO_PASSWORD_HASH = Buffer.alloc(32);
