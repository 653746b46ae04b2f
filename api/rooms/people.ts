import { createApiKeyService } from '../../domain/api-keys/api-key.service.ts';
import { limitKeysOfUser, revokeKeysOfUser } from '../../domain/api-keys/revoke-keys.ts';
import { createActorNameService } from '../../domain/audit/actor-names.ts';
import { createAuditLogService } from '../../domain/audit/audit-log.service.ts';
import { requireNoSubscription } from '../../domain/billing/subscription-status.ts';
import { createConnections } from '../../domain/connections/create-connections.ts';
import { endConnectionsOfUser } from '../../domain/connections/end-connections.ts';
import { createDeletions } from '../../domain/deletions/create-deletions.ts';
import { createRestoreDeleted } from '../../domain/deletions/restore-account.ts';
import { createInvitations } from '../../domain/invitations/create-invitations.ts';
import { revokeInvitationsOfLeaver } from '../../domain/invitations/invitation.service.ts';
import { createOauth } from '../../domain/oauth/create-oauth.ts';
import { createOrganizations } from '../../domain/organizations/create-organizations.ts';
import { createPeople, preparePeople } from '../../domain/people/create-people.ts';
import { createOwnerNotices } from '../../domain/people/owner-notices.ts';
import { createPolicyService } from '../../domain/policies/policy.service.ts';
import { createSessionService } from '../../domain/sessions/session.service.ts';
import type { SharedServices } from '../../domain/shared-services.ts';
import { createSso } from '../../domain/sso/create-sso.ts';
import { isOwnSsoSession } from '../../domain/sso/sso-settings.ts';
import { createEgress, readEgressOptions } from '../../platform/egress/egress.ts';
import { createGuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import type { ServiceOptions } from './service-options.ts';

/** Organizations, the people in them, and how they sign in. */
export function createPeopleRooms(options: ServiceOptions, shared: SharedServices) {
  const { config, database, outbox, logger, passwordParameters } = options;
  const { notifications: ownerNotifications, personNotifications } = shared;
  const publicUrl = config.PUBLIC_URL.replace(/\/+$/, '');
  const egressOptions = readEgressOptions(config);
  const { guardedFetch = createGuardedFetch(createEgress(egressOptions)) } = options;
  const ownerNotices = createOwnerNotices(shared);
  const people = {
    ...preparePeople({ ...shared, config, database, passwordParameters }),
    config,
    publicUrl,
    logger,
    outbox,
    ownerNotices,
    ownerNotifications,
    restoreDeleted: createRestoreDeleted({ outbox, notifications: personNotifications }),
  };
  return {
    ...createOrganizations({
      database,
      ownerNotices,
      ofMember: {
        endConnections: ({ db }, member) => endConnectionsOfUser(db, member),
        revokeKeys: ({ db }, { organizationId, userId }) => revokeKeysOfUser(db, organizationId, userId),
        limitKeys: ({ db }, member) => limitKeysOfUser(db, member),
        revokeInvitations: ({ db }, member) => revokeInvitationsOfLeaver(db, member),
      },
    }),
    apiKeys: createApiKeyService({ database }),
    policies: createPolicyService({ database, isOwnSsoSession, onWeaken: ownerNotices.policiesWeakened }),
    auditLog: createAuditLogService({ database }),
    actorNames: createActorNameService({ database }),
    sessions: createSessionService({ database }),
    ...createPeople(people),
    ...createOauth(people),
    ...createSso({
      ...people,
      egressOptions,
      guardedFetch,
    }),
    ...createConnections({
      database,
      signingKey: config.SIGNING_KEY,
      publicUrl,
      guardedFetch,
    }),
    ...createInvitations(people),
    ...createDeletions({
      ...people,
      requireDeletable: config.BILLING_ENABLED ? requireNoSubscription : async () => undefined,
    }),
  };
}
