import { createApiKeyToken, hashApiKeyToken } from '../../domain/api-keys/api-key-token.ts';
import { type Attachment, AttachmentEntity } from '../../domain/attachments/attachment.entity.ts';
import { KEY_PERMISSIONS, type Permission } from '../../domain/identity/permissions.ts';
import { type Inbox, InboxEntity } from '../../domain/inboxes/inbox.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';

export interface TestOrganization {
  organizationId: string;
  productionEnvironmentId: string;
  sandboxEnvironmentId: string;
  ownerId: string;
  /** Token of an organization-wide key. */
  token: string;
  keyId: string;
}

/** Creates an organization. @param worker connected as a worker, which may write rows of every tenant. */
export async function createOrganization(
  worker: Database,
  { permissions = [...KEY_PERMISSIONS] }: { permissions?: Permission[] } = {},
): Promise<TestOrganization> {
  const organizationId = newId('organization');
  const ownerId = newId('user');
  const environmentIds = { production: newId('environment'), sandbox: newId('environment') };
  await worker.systemTransaction(async ({ db }) => {
    await db
      .insertInto('organizations')
      .values({ id: organizationId, name: 'Test', slug: organizationId })
      .execute();
    for (const kind of ['production', 'sandbox'] as const)
      await db
        .insertInto('environments')
        .values({ id: environmentIds[kind], org_id: organizationId, name: kind, slug: kind, kind })
        .execute();
    await db
      .insertInto('users')
      .values({ id: ownerId, email: `${ownerId}@example.test`, name: null, password_hash: null })
      .execute();
    await db
      .insertInto('members')
      .values({ org_id: organizationId, user_id: ownerId, role: 'owner' })
      .execute();
  });
  const key = await createKey(worker, { organizationId, permissions });
  return {
    organizationId,
    productionEnvironmentId: environmentIds.production,
    sandboxEnvironmentId: environmentIds.sandbox,
    ownerId,
    ...key,
  };
}

export interface TestKey {
  organizationId: string;
  permissions?: Permission[];
  environmentId?: string | null;
  inboxId?: string | null;
  expiresAt?: Date | null;
}

export async function createKey(
  worker: Database,
  { organizationId, permissions = [...KEY_PERMISSIONS], environmentId, inboxId, expiresAt }: TestKey,
): Promise<{ token: string; keyId: string }> {
  const token = createApiKeyToken('live');
  const keyId = newId('apiKey');
  await worker.systemTransaction(async ({ db }) => {
    await db
      .insertInto('api_keys')
      .values({
        id: keyId,
        org_id: organizationId,
        env_id: environmentId ?? null,
        inbox_id: inboxId ?? null,
        name: 'Test key',
        token_hash: hashApiKeyToken(token),
        last_four: token.slice(-4),
        permissions,
        expires_at: expiresAt ?? null,
        revoked_at: null,
        last_used_at: null,
      })
      .execute();
  });
  return { token, keyId };
}

/** Creates an inbox without the API, for tests that are not about inboxes. */
export async function createInbox(
  worker: Database,
  organization: Pick<TestOrganization, 'organizationId' | 'productionEnvironmentId'>,
  {
    username,
    environmentId,
    domain = 'mail.test',
  }: { username?: string; environmentId?: string; domain?: string } = {},
): Promise<Inbox> {
  const id = newId('inbox');
  const { organizationId } = organization;
  const name = username ?? id.replace('_', '-');
  return worker.systemTransaction(async ({ db }) => {
    const email = `${name}@${domain}`;
    await db
      .insertInto('address_claims')
      .values({ email, org_id: organizationId, inbox_id: id, released_at: null })
      .execute();
    return db
      .insertInto('inboxes')
      .values({
        id,
        org_id: organizationId,
        env_id: environmentId ?? organization.productionEnvironmentId,
        email,
        username: name,
        domain,
        display_name: null,
        client_id: null,
        send_paused_reason: null,
        deleted_at: null,
      })
      .returning(columnsOf(InboxEntity))
      .executeTakeFirstOrThrow();
  });
}

/** Creates an upload without bytes in storage. */
export async function createAttachment(worker: Database, inboxId: string): Promise<Attachment> {
  return worker.systemTransaction(async ({ db }) => {
    const inbox = await db
      .selectFrom('inboxes')
      .select(columnsOf(InboxEntity))
      .where('id', '=', inboxId)
      .executeTakeFirstOrThrow();
    const id = newId('attachment');
    return db
      .insertInto('attachments')
      .values({
        id,
        org_id: inbox.organizationId,
        env_id: inbox.environmentId,
        inbox_id: inboxId,
        message_id: null,
        draft_id: null,
        position: 0,
        filename: 'a.txt',
        content_type: 'text/plain',
        size_bytes: 1,
        sha256: Buffer.alloc(32),
        storage_key: `attachments/${id}`,
        content_id: null,
        disposition: 'attachment',
      })
      .returning(columnsOf(AttachmentEntity))
      .executeTakeFirstOrThrow();
  });
}
