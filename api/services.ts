import type { Logger } from 'pino';
import { applyTier } from '../domain/administration/apply-tier.ts';
import { createKeyAdministrationService } from '../domain/administration/key-administration.service.ts';
import { createLimitAdministrationService } from '../domain/administration/limit-administration.service.ts';
import { createOrganizationDetailsService } from '../domain/administration/organization-details.service.ts';
import { createOrganizationDirectoryService } from '../domain/administration/organization-directory.service.ts';
import { createOrganizationOperationsService } from '../domain/administration/organization-operations.service.ts';
import { createOwnerAdministrationService } from '../domain/administration/owner-administration.service.ts';
import { createStaffAdministrationService } from '../domain/administration/staff-administration.service.ts';
import { createSuspensionAdministrationService } from '../domain/administration/suspension-administration.service.ts';
import { createSystemEmailService } from '../domain/administration/system-email.service.ts';
import { createUserAdministrationService } from '../domain/administration/user-administration.service.ts';
import { createAnnouncementService } from '../domain/announcements/announcement.service.ts';
import { createApiKeyService } from '../domain/api-keys/api-key.service.ts';
import { limitKeysOfUser, revokeKeysOfUser } from '../domain/api-keys/revoke-keys.ts';
import { createAuditLogService } from '../domain/audit/audit-log.service.ts';
import { createBillingServices, isPaidTier } from '../domain/billing/billing-services.ts';
import { requireNoSubscription } from '../domain/billing/require-no-subscription.ts';
import { createAccountDeletionService } from '../domain/deletions/account-deletion.service.ts';
import { createOrganizationDeletionService } from '../domain/deletions/organization-deletion.service.ts';
import { createRestoreDeleted } from '../domain/deletions/restore-account.ts';
import { createListService } from '../domain/deliverability/list.service.ts';
import { createSuppressionService } from '../domain/deliverability/suppression.service.ts';
import { createUnsubscribeService } from '../domain/deliverability/unsubscribe.service.ts';
import { createDomainService } from '../domain/domains/domain.service.ts';
import { lockVerifiedDomain } from '../domain/domains/lock-verified-domain.ts';
import { createApprovalService } from '../domain/drafts/approval.service.ts';
import { createApprovedRecipientService } from '../domain/drafts/approved-recipient.service.ts';
import { createDraftPreviewService } from '../domain/drafts/draft-preview.service.ts';
import { unscheduleDraftsOfInbox } from '../domain/drafts/unschedule-drafts-of-inbox.ts';
import { createEventReaderService } from '../domain/events/event-reader.service.ts';
import { createEventStreams } from '../domain/events/event-stream.ts';
import { createExportService } from '../domain/exports/export.service.ts';
import { ROLE_PERMISSIONS } from '../domain/identity/roles.ts';
import { createImpersonationService } from '../domain/impersonation/impersonation.service.ts';
import { createImpersonationRecord } from '../domain/impersonation/impersonation-record.ts';
import { createInboxService } from '../domain/inboxes/inbox.service.ts';
import { createAcceptInvitationService } from '../domain/invitations/accept-invitation.service.ts';
import {
  createInvitationService,
  revokeInvitationsOfLeaver,
} from '../domain/invitations/invitation.service.ts';
import { createDeletionService } from '../domain/messages/deletion.service.ts';
import { createLabelService } from '../domain/messages/label.service.ts';
import { createMessageService } from '../domain/messages/message.service.ts';
import { createMessageWaitService } from '../domain/messages/message-wait.service.ts';
import { createRawMessageService } from '../domain/messages/raw-message.service.ts';
import { createThreadService } from '../domain/messages/thread.service.ts';
import { createMetricService } from '../domain/metrics/metric.service.ts';
import type { HtmlConverter } from '../domain/mime/converter/pool.ts';
import { createHealthService } from '../domain/monitoring/health.service.ts';
import { createOutboxAdministrationService } from '../domain/monitoring/outbox-administration.service.ts';
import { createScheduleAdministrationService } from '../domain/monitoring/schedule-administration.service.ts';
import { createOauthClient } from '../domain/oauth/create-oauth-client.ts';
import { createOauthService } from '../domain/oauth/oauth.service.ts';
import { createOauthLinkService } from '../domain/oauth/oauth-link.service.ts';
import { createEnvironmentService } from '../domain/organizations/environment.service.ts';
import { createMemberService } from '../domain/organizations/member.service.ts';
import { createOrganizationService } from '../domain/organizations/organization.service.ts';
import { createOwnershipService } from '../domain/organizations/ownership.service.ts';
import { cancelUnsentOfInbox } from '../domain/outbound/cancel-send.ts';
import { createOutcomeWaitService } from '../domain/outbound/outcome-wait.service.ts';
import { createReplyService } from '../domain/outbound/reply.service.ts';
import { createSendService } from '../domain/outbound/send.service.ts';
import { createAccountService } from '../domain/people/account.service.ts';
import { createMfaService } from '../domain/people/mfa.service.ts';
import { createMfaChallengeService } from '../domain/people/mfa-challenge.service.ts';
import { createOwnerNotices } from '../domain/people/owner-notices.ts';
import { createPasskeyEnrollmentService } from '../domain/people/passkeys/passkey-enrollment.service.ts';
import { createPasskeySignInService } from '../domain/people/passkeys/passkey-sign-in.service.ts';
import { relyingPartyOf } from '../domain/people/passkeys/relying-party.ts';
import { createPasswordService } from '../domain/people/password.service.ts';
import { createPolicyPreviewService } from '../domain/people/policy-preview.service.ts';
import { createSignInService } from '../domain/people/sign-in.service.ts';
import { createSignInThrottle } from '../domain/people/sign-in-throttle.ts';
import { createSignUpService } from '../domain/people/sign-up.service.ts';
import { createPolicyService } from '../domain/policies/policy.service.ts';
import { createMailIntake } from '../domain/providers/mail-intake.service.ts';
import { createRawMailService } from '../domain/providers/raw-mail.service.ts';
import { createSesMailService } from '../domain/providers/ses-mail.service.ts';
import { createSesNotificationService } from '../domain/providers/ses-notification.service.ts';
import { createRefusalService } from '../domain/refusals/refusal.service.ts';
import { createRetentionPolicyService } from '../domain/retention/retention-policy.service.ts';
import { createSessionService } from '../domain/sessions/session.service.ts';
import { createSharedServices } from '../domain/shared-services.ts';
import { createBreakGlass } from '../domain/sso/break-glass.ts';
import { createKeyRenewal } from '../domain/sso/key-renewal.ts';
import { createMetadataSource } from '../domain/sso/metadata-source.ts';
import { createOidcClient } from '../domain/sso/oidc-client.ts';
import { createSamlClient } from '../domain/sso/saml/saml-client.ts';
import { createSsoActivationService } from '../domain/sso/sso-activation.service.ts';
import { createSsoConfigurationService } from '../domain/sso/sso-configuration.service.ts';
import { createSsoLinkService } from '../domain/sso/sso-link.service.ts';
import { createSsoLoginService } from '../domain/sso/sso-login.service.ts';
import { isOwnSsoSession } from '../domain/sso/sso-settings.ts';
import { createSsoSetupService } from '../domain/sso/sso-setup.service.ts';
import { createSsoSetupLinkService } from '../domain/sso/sso-setup-link.service.ts';
import { recordStaffAudit } from '../domain/staff/record-staff-audit.ts';
import { createStaffAuditLogService } from '../domain/staff/staff-audit-log.service.ts';
import { createOpenSuspensionList } from '../domain/suspensions/open-suspensions.ts';
import { createToggleService } from '../domain/toggles/toggle.service.ts';
import { createUpgradeDecisionService } from '../domain/upgrade-requests/upgrade-decision.service.ts';
import { createUpgradeRequestService } from '../domain/upgrade-requests/upgrade-request.service.ts';
import { createApiCallMeter } from '../domain/usage/api-call-meter.ts';
import { createLimitService } from '../domain/usage/limit.service.ts';
import { createUsageService } from '../domain/usage/usage.service.ts';
import { createBulkJobService } from '../domain/webhooks/bulk-job.service.ts';
import { createDeliveryControlService } from '../domain/webhooks/delivery-control.service.ts';
import { createWebhookEndpointService } from '../domain/webhooks/endpoint.service.ts';
import { releaseUsageLimited } from '../domain/webhooks/release-usage-limited.ts';
import { createStaffJobService } from '../domain/workflow-runs/staff-job.service.ts';
import { createWorkflowRunService } from '../domain/workflow-runs/workflow-run.service.ts';
import { boundedFetch } from '../platform/bounded-fetch.ts';
import { bounceDomain, type Config, feedbackAddress } from '../platform/config.ts';
import { createSigner } from '../platform/crypto.ts';
import type { Database } from '../platform/database/database.ts';
import { createEgress, createTargetCheck, readEgressOptions } from '../platform/egress/egress.ts';
import { createGuardedFetch } from '../platform/egress/guarded-fetch.ts';
import { createEventSignals } from '../platform/event-signals.ts';
import { readOauthProviders } from '../platform/oauth-providers.ts';
import type { Outbox } from '../platform/outbox/outbox.ts';
import type { ServiceMetrics } from '../platform/service-metrics.ts';
import type { SesObjects } from '../platform/ses-objects.ts';
import type { Storage } from '../platform/storage.ts';
import type { ScheduleReader } from '../platform/temporal-runs/schedule-reader.ts';
import type { WorkflowRuns } from '../platform/temporal-runs/workflow-run.ts';

export interface ServiceOptions {
  config: Config;
  database: Database;
  /** Connected as a worker, for mail and reports that providers deliver. Default: `database`. */
  workerDatabase?: Database | undefined;
  outbox: Outbox;
  storage: Storage;
  sesObjects: SesObjects;
  converter: HtmlConverter;
  temporalRuns: WorkflowRuns;
  schedules: ScheduleReader;
  logger: Logger;
  metrics?: Pick<ServiceMetrics, 'events'>;
}

/** Every service that routes call, under the name that routes use. */
export type Services = ReturnType<typeof createServices>;

export function createServices({
  config,
  database,
  workerDatabase = database,
  outbox,
  storage,
  sesObjects,
  converter,
  temporalRuns,
  schedules,
  logger,
  metrics,
}: ServiceOptions) {
  const shared = createSharedServices({ config, database, workerDatabase, outbox, storage, metrics });
  const {
    events,
    secretBox,
    unsubscribeLinks,
    sending,
    draftCreation,
    receipts,
    outcomes,
    dns,
    dnsSettings,
  } = shared;
  const intake = createMailIntake({ storage, receipts, maxSizeBytes: config.INBOUND_MAX_SIZE_BYTES });
  const messages = createMessageService({ database });
  const signals = createEventSignals({ url: config.SIGNALS_DATABASE_URL ?? config.DATABASE_URL, logger });
  const eventStreams = createEventStreams({ database, signals, logger });
  const publicUrl = config.PUBLIC_URL.replace(/\/+$/, '');
  const egressOptions = readEgressOptions(config);
  const guardedFetch = createGuardedFetch(createEgress(egressOptions));
  const saml = createSamlClient({ publicUrl, allowHttp: !egressOptions.requireHttps });
  const people = {
    database,
    notifications: shared.personNotifications,
    throttle: createSignInThrottle({ database }),
    secretBox,
    recoverySigner: createSigner(config.SIGNING_KEY, 'recovery-code'),
    relyingParty: relyingPartyOf(config.PUBLIC_URL),
    // Every tenant can receive mail in these domains.
    ownDomains: [config.MAIL_DOMAIN, bounceDomain(config)].map((domain) => domain.toLowerCase()),
  };
  const oauthConnections = readOauthProviders(config).map((provider) => ({
    provider,
    client: createOauthClient(provider, {
      fetch: boundedFetch,
      redirectUri: `${config.PUBLIC_URL.replace(/\/+$/, '')}/api/v1/auth/oauth/${provider.id}/callback`,
    }),
  }));
  const ownerNotices = createOwnerNotices(shared);
  const metadataSource = createMetadataSource(guardedFetch);
  const oidc = createOidcClient({
    fetch: guardedFetch,
    redirectUri: `${publicUrl}/api/v1/auth/sso/oidc/callback`,
    allowHttp: !egressOptions.requireHttps,
  });
  const ssoConfigurations = createSsoConfigurationService({
    database,
    secretBox,
    findTargetRefusal: createTargetCheck(egressOptions),
    ownDomains: people.ownDomains,
    metadataSource,
    parseMetadata: saml.parseMetadata,
  });
  const ssoKeyRenewal = createKeyRenewal({ database, secretBox, metadataSource, oidc, saml, logger });
  const ssoSignIn = { ...people, ownerNotifications: shared.notifications, oidc, saml };
  const ssoLogins = createSsoLoginService({ ...ssoSignIn, keyRenewal: ssoKeyRenewal });
  const webhookJobs = createBulkJobService({ database, outbox });
  const retentionPolicies = createRetentionPolicyService({ database, outbox });
  const requireDeletable = config.BILLING_ENABLED ? requireNoSubscription : async () => undefined;
  const restoreDeleted = createRestoreDeleted({ outbox, notifications: shared.personNotifications });
  const billingServices = createBillingServices({
    config,
    database,
    workerDatabase,
    outbox,
    logger,
    notifications: shared.notifications,
    suspensions: shared.suspensions,
  });
  return {
    inboxes: createInboxService({
      database,
      outbox,
      mailDomain: config.MAIL_DOMAIN,
      feedbackAddress: feedbackAddress(config),
      lockVerifiedDomain,
      async onDelete(transaction, inboxId) {
        await cancelUnsentOfInbox(transaction, outbox, inboxId);
        await unscheduleDraftsOfInbox(transaction, outbox, inboxId);
      },
    }),
    credentials: shared.credentials,
    drafts: shared.drafts,
    messages,
    sends: createSendService({ ...sending, drafts: draftCreation }),
    approvals: createApprovalService(sending),
    draftPreviews: createDraftPreviewService({ database, converter }),
    approvedRecipients: createApprovedRecipientService({ database }),
    messageWaits: createMessageWaitService({ database, messages, eventStreams }),
    outcomeWaits: createOutcomeWaitService({ messages, eventStreams }),
    deletions: createDeletionService({ database, outbox, events: shared.events }),
    labels: createLabelService({ database, events }),
    attachments: shared.attachments,
    replies: createReplyService({ ...sending, converter, drafts: draftCreation }),
    unsubscriptions: createUnsubscribeService({ database, links: unsubscribeLinks }),
    rawMessages: createRawMessageService({ database, storage }),
    threads: createThreadService({ database }),
    apiKeys: createApiKeyService({ database }),
    domains: createDomainService({
      database,
      outbox,
      events,
      dns,
      secretBox,
      settings: dnsSettings,
      ownDomains: [config.MAIL_DOMAIN, bounceDomain(config)],
    }),
    webhookEndpoints: createWebhookEndpointService({
      database,
      outbox,
      secretBox,
      findTargetRefusal: createTargetCheck(egressOptions),
    }),
    webhookDeliveries: createDeliveryControlService({ database, outbox }),
    webhookJobs,
    eventReader: createEventReaderService({ database }),
    eventStreams,
    accessSignals: signals,
    metrics: createMetricService({ database }),
    organizations: createOrganizationService({ database }),
    environments: createEnvironmentService({ database }),
    ownership: createOwnershipService({
      database,
      async onTransfer(transaction, scope, transfer) {
        const { organizationId } = scope;
        const { userId } = transfer.from;
        await limitKeysOfUser(transaction.em, {
          organizationId,
          userId,
          permissions: ROLE_PERMISSIONS.admin,
        });
        await ownerNotices.ownershipTransferred(transaction, scope, transfer);
      },
    }),
    members: createMemberService({
      database,
      async onDemote({ em }, { organizationId, userId, role, revokeKeys }) {
        if (revokeKeys)
          return { keysRevoked: await revokeKeysOfUser(em, organizationId, userId), keysLimited: 0 };
        const permissions = ROLE_PERMISSIONS[role];
        return {
          keysRevoked: 0,
          keysLimited: await limitKeysOfUser(em, { organizationId, userId, permissions }),
        };
      },
      onOwnerChange: ownerNotices.ownerChanged,
      async onRemove({ db, em }, { organizationId, userId, revokeKeys }) {
        const keysRevoked = revokeKeys ? await revokeKeysOfUser(em, organizationId, userId) : 0;
        const invitationsRevoked = await revokeInvitationsOfLeaver(db, { organizationId, userId });
        return { keysRevoked, invitationsRevoked };
      },
    }),
    policyPreviews: createPolicyPreviewService({ database }),
    policies: createPolicyService({
      database,
      isOwnSsoSession,
      onWeaken: ownerNotices.policiesWeakened,
    }),
    ...billingServices,
    auditLog: createAuditLogService({ database }),
    staffAuditLog: createStaffAuditLogService({ database }),
    toggles: createToggleService({ database, outbox }),
    workflowRuns: createWorkflowRunService({ database, outbox, runs: temporalRuns }),
    staffJobs: createStaffJobService({ database, outbox }),
    impersonations: createImpersonationService({ database, notifications: shared.notifications }),
    recordImpersonatedCall: createImpersonationRecord({ database }),
    announcements: createAnnouncementService({ database, outbox }),
    health: createHealthService({ database, schedules, logger }),
    outboxAdministration: createOutboxAdministrationService({ database }),
    scheduleAdministration: createScheduleAdministrationService({ database, outbox, schedules }),
    systemEmails: createSystemEmailService({ database, outbox }),
    organizationOperations: createOrganizationOperationsService({ database, retentionPolicies, webhookJobs }),
    userAdministration: createUserAdministrationService(people),
    staffAdministration: createStaffAdministrationService(people),
    keyAdministration: createKeyAdministrationService({ database, notifications: shared.notifications }),
    organizationDirectory: createOrganizationDirectoryService({ database }),
    organizationDetails: createOrganizationDetailsService({ database }),
    suspensionAdministration: createSuspensionAdministrationService({
      database,
      suspensions: shared.suspensions,
    }),
    limitAdministration: createLimitAdministrationService({ database, outbox }),
    ownerAdministration: createOwnerAdministrationService({
      database,
      notifications: shared.personNotifications,
    }),
    openSuspensions: createOpenSuspensionList({ database }),
    upgradeRequests: createUpgradeRequestService({ database }),
    upgradeDecisions: createUpgradeDecisionService({
      database,
      notifications: shared.notifications,
      findPaymentPage: (tenant, tier) =>
        isPaidTier(config, tier) ? billingServices.billing?.findPaymentPage(tenant, tier) : undefined,
      async onApprove(transaction, staff, { organizationId, tier, decisionNote }) {
        // Then the subscription grants the tier.
        if (isPaidTier(config, tier)) return;
        await applyTier(transaction, outbox, {
          organizationId,
          tier,
          actor: staff.staffId,
          at: new Date(),
          record: (event) =>
            recordStaffAudit(transaction.em, staff, {
              ...event,
              organizationIds: [organizationId],
              reason: decisionNote ?? '',
            }),
        });
      },
    }),
    invitations: createInvitationService(people),
    invitationAcceptance: createAcceptInvitationService({ ...people, ownerNotices }),
    sessions: createSessionService({ database }),
    signUps: createSignUpService({ ...people, tier: config.DEFAULT_TIER }),
    signIns: createSignInService(people),
    passwords: createPasswordService(people),
    accounts: createAccountService(people),
    mfa: createMfaService({ ...people, issuer: new URL(config.PUBLIC_URL).hostname }),
    mfaChallenges: createMfaChallengeService({ ...people, restoreDeleted }),
    passkeyEnrollments: createPasskeyEnrollmentService(people),
    passkeySignIns: createPasskeySignInService(people),
    oauth: createOauthService({
      ...people,
      connections: oauthConnections,
      tier: config.DEFAULT_TIER,
      logger,
    }),
    oauthLinks: createOauthLinkService({
      ...people,
      names: new Map(oauthConnections.map(({ provider: { id, name } }) => [id, name])),
    }),
    ssoConfigurations,
    ssoActivations: createSsoActivationService({
      database,
      secretBox,
      notifications: shared.notifications,
      ownerNotices,
      parseMetadata: saml.parseMetadata,
    }),
    ssoLogins,
    ssoLinks: createSsoLinkService(ssoSignIn),
    ssoKeyRenewal,
    ssoSetupLinks: createSsoSetupLinkService({ ...people, publicUrl }),
    ssoSetup: createSsoSetupService({ database, ssoConfigurations, ssoLogins }),
    ssoBreakGlass: createBreakGlass({ database, notifications: shared.notifications }),
    accountDeletions: createAccountDeletionService({ ...people, outbox, restoreDeleted, requireDeletable }),
    organizationDeletions: createOrganizationDeletionService({
      database,
      outbox,
      notifications: shared.notifications,
      requireDeletable,
    }),
    retentionPolicies,
    suppressions: createSuppressionService({ database }),
    refusals: createRefusalService({ database }),
    apiCalls: createApiCallMeter({ database, logger }),
    usage: createUsageService({ database }),
    limits: createLimitService({
      database,
      onChange: async (transaction, organizationId) => {
        await releaseUsageLimited(transaction, outbox, { organizationId, now: new Date() });
      },
    }),
    allowBlockLists: createListService({ database }),
    exports: createExportService({ database, outbox, storage }),
    rawMail: createRawMailService({ intake, secret: config.PROVIDER_RAW_SECRET }),
    sesNotifications: createSesNotificationService({
      database: workerDatabase,
      outcomes,
      sesMail: createSesMailService({
        intake,
        objects: sesObjects,
        buckets: parseList(config.SES_INBOUND_BUCKETS),
        onUnknownRecipients: (sesMessageId, recipients) =>
          logger.warn({ sesMessageId, recipients }, 'SES received a message for unknown recipients'),
      }),
      egress: createEgress({ ...egressOptions, requireHttps: true }),
      topicArns: parseList(config.SES_TOPIC_ARNS),
    }),
  };
}

function parseList(setting = ''): string[] {
  return setting.split(',').flatMap((item) => item.trim() || []);
}
