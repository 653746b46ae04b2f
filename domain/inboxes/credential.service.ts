import { timingSafeEqual } from 'node:crypto';
import { randomBase62, sha256 } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import { findRow } from '../../platform/database/find-rows.ts';
import { storableText } from '../../platform/database/storable.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requirePermission, type Scope } from '../identity/scope.ts';
import { findActiveInbox, readInbox } from './find-inbox.ts';
import { type Inbox, InboxEntity } from './inbox.entity.ts';
import { type InboxCredential, InboxCredentialEntity } from './inbox-credential.entity.ts';

export interface InboxCredentials {
  /** The inbox's address. */
  username: string;
  /** Null until a password has been created. */
  rotatedAt: Date | null;
}

/** An inbox authenticated by its SMTP password, and when that password was created. */
export interface AuthenticatedInbox {
  inbox: Inbox;
  rotatedAt: Date;
}

export interface CredentialService {
  /** @throws AppError `not_found`. */
  get(scope: Scope, inboxId: string): Promise<InboxCredentials>;
  /**
   * Creates a new password, which replaces the previous one immediately and is not returned again.
   *
   * @throws AppError `not_found`; `permission_denied` without `messages:send`, which the password grants.
   */
  rotate(scope: Scope, inboxId: string): Promise<InboxCredentials & { password: string }>;
  /** Returns null if the username or password is wrong. The comparison takes the same time in both cases. */
  authenticate(username: string, password: string): Promise<AuthenticatedInbox | null>;
}

/** 190 bits in base62. */
const PASSWORD_LENGTH = 32;

export function createCredentialService({ database }: { database: Database }): CredentialService {
  return {
    get: (scope, inboxId) =>
      database.read(scope, async (reader) => {
        const inbox = await readInbox(reader, scope, inboxId);
        const credential = await findRow(reader, InboxCredentialEntity, { where: { inboxId } });
        return { username: inbox.email, rotatedAt: credential?.rotatedAt ?? null };
      }),

    rotate: (scope, inboxId) =>
      database.transaction(scope, async ({ em }) => {
        requirePermission(scope, 'messages:send');
        const inbox = await findActiveInbox(em, scope, inboxId);
        const password = randomBase62(PASSWORD_LENGTH);
        const rotatedAt = new Date();
        await em.upsert(InboxCredentialEntity, {
          inboxId: inbox.id,
          organizationId: inbox.organizationId,
          passwordHash: sha256(password),
          rotatedAt,
        } as InboxCredential);
        await recordAudit(em, scope, {
          action: 'inbox.credentials_rotated',
          resourceType: 'inbox',
          resourceId: inbox.id,
        });
        return { username: inbox.email, rotatedAt, password };
      }),

    authenticate: (username, password) =>
      database.autocommit(async (em) => {
        const inbox = await em.findOne(InboxEntity, {
          email: storableText(username).toLowerCase(),
          deletedAt: null,
        });
        const credential = inbox && (await em.findOne(InboxCredentialEntity, { inboxId: inbox.id }));
        const expected = credential?.passwordHash ?? NO_PASSWORD_HASH;
        const matches = timingSafeEqual(sha256(password), expected);
        return matches && credential ? { inbox, rotatedAt: credential.rotatedAt } : null;
      }),
  };
}

/** Compared if there is no credential, to take the same time. No password has this hash. */
const NO_PASSWORD_HASH = Buffer.alloc(32);
