import { ApiKeyEntity } from '../../domain/api-keys/api-key.entity.ts';
import { createApiKeyToken, hashApiKeyToken } from '../../domain/api-keys/api-key-token.ts';
import { type Attachment, AttachmentEntity } from '../../domain/attachments/attachment.entity.ts';
import { KEY_PERMISSIONS, type Permission } from '../../domain/identity/permissions.ts';
import { AddressClaimEntity } from '../../domain/inboxes/address-claim.entity.ts';
import { type Inbox, InboxEntity } from '../../domain/inboxes/inbox.entity.ts';
import { EnvironmentEntity } from '../../domain/organizations/environment.entity.ts';
import { MemberEntity } from '../../domain/organizations/member.entity.ts';
import { OrganizationEntity } from '../../domain/organizations/organization.entity.ts';
import { UserEntity } from '../../domain/people/user.entity.ts';
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
  await worker.systemTransaction(async ({ em }) => {
    em.create(OrganizationEntity, { id: organizationId, name: 'Test', slug: organizationId });
    for (const kind of ['production', 'sandbox'] as const)
      em.create(EnvironmentEntity, { id: environmentIds[kind], organizationId, name: kind, kind });
    em.create(UserEntity, { id: ownerId, email: `${ownerId}@example.test`, name: null, passwordHash: null });
    em.create(MemberEntity, { organizationId, userId: ownerId, role: 'owner' });
    await em.flush();
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
  await worker.systemTransaction(async ({ em }) => {
    em.create(ApiKeyEntity, {
      id: keyId,
      organizationId,
      environmentId: environmentId ?? null,
      inboxId: inboxId ?? null,
      name: 'Test key',
      tokenHash: hashApiKeyToken(token),
      lastFour: token.slice(-4),
      permissions,
      expiresAt: expiresAt ?? null,
      revokedAt: null,
      lastUsedAt: null,
    });
    await em.flush();
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
  return worker.systemTransaction(async ({ em }) => {
    const email = `${name}@${domain}`;
    em.create(AddressClaimEntity, { email, organizationId, inboxId: id, releasedAt: null });
    const inbox = em.create(InboxEntity, {
      id,
      organizationId,
      environmentId: environmentId ?? organization.productionEnvironmentId,
      email,
      username: name,
      domain,
      displayName: null,
      clientId: null,
      sendPausedReason: null,
      deletedAt: null,
    });
    await em.flush();
    return inbox;
  });
}

/** Creates an upload without bytes in storage. */
export async function createAttachment(worker: Database, inboxId: string): Promise<Attachment> {
  return worker.systemTransaction(async ({ em }) => {
    const inbox = await em.findOneOrFail(InboxEntity, { id: inboxId });
    const id = newId('attachment');
    const attachment = em.create(AttachmentEntity, {
      id,
      organizationId: inbox.organizationId,
      environmentId: inbox.environmentId,
      inboxId,
      messageId: null,
      draftId: null,
      position: 0,
      filename: 'a.txt',
      contentType: 'text/plain',
      sizeBytes: 1,
      sha256: Buffer.alloc(32),
      storageKey: `attachments/${id}`,
      contentId: null,
      disposition: 'attachment',
    });
    em.persist(attachment);
    return attachment;
  });
}
