import type { FastifyInstance } from 'fastify';
import { staffAuditLogRoutes } from './admin/audit-log.routes.ts';
import { adminHealthRoutes } from './admin/health.routes.ts';
import { impersonationRoutes } from './admin/impersonation.routes.ts';
import { adminKeyRoutes } from './admin/keys.routes.ts';
import { adminLimitRoutes } from './admin/limits.routes.ts';
import { adminNotificationRoutes } from './admin/notifications.routes.ts';
import { adminOrganizationRoutes } from './admin/organizations.routes.ts';
import { staffRoutes } from './admin/staff.routes.ts';
import { staffJobRoutes } from './admin/staff-jobs.routes.ts';
import { staffMemberRoutes } from './admin/staff-members.routes.ts';
import { suspensionRoutes } from './admin/suspensions.routes.ts';
import { toggleRoutes } from './admin/toggles.routes.ts';
import { adminUpgradeRequestRoutes } from './admin/upgrade-requests.routes.ts';
import { adminUsageRoutes } from './admin/usage.routes.ts';
import { adminUserRoutes } from './admin/users.routes.ts';
import { workflowRoutes } from './admin/workflows.routes.ts';
import { apiKeyRoutes } from './api-keys/api-keys.routes.ts';
import { attachmentRoutes } from './attachments/attachments.routes.ts';
import { billingRoutes } from './billing/billing.routes.ts';
import { stripeEventRoutes } from './billing/stripe-events.routes.ts';
import { listRoutes } from './deliverability/lists.routes.ts';
import { suppressionRoutes } from './deliverability/suppressions.routes.ts';
import { domainRoutes } from './domains/domains.routes.ts';
import { approvalRoutes } from './drafts/approvals.routes.ts';
import { draftRoutes } from './drafts/drafts.routes.ts';
import { eventStreamRoutes } from './events/event-stream.routes.ts';
import { eventRoutes } from './events/events.routes.ts';
import { exportRoutes } from './exports/exports.routes.ts';
import { credentialRoutes } from './inboxes/credentials.routes.ts';
import { inboxRoutes } from './inboxes/inboxes.routes.ts';
import { invitationRoutes } from './invitations/invitations.routes.ts';
import { deletionRoutes } from './messages/deletions.routes.ts';
import { labelRoutes } from './messages/labels.routes.ts';
import { messageRoutes } from './messages/messages.routes.ts';
import { rawRoutes } from './messages/raw.routes.ts';
import { threadRoutes } from './messages/threads.routes.ts';
import { waitRoutes } from './messages/wait.routes.ts';
import { metricRoutes } from './metrics/metrics.routes.ts';
import { oauthRoutes } from './oauth/oauth.routes.ts';
import { auditLogRoutes } from './organizations/audit-log.routes.ts';
import { environmentRoutes } from './organizations/environments.routes.ts';
import { memberRoutes } from './organizations/members.routes.ts';
import { organizationRoutes } from './organizations/organization.routes.ts';
import { policyRoutes } from './organizations/policies.routes.ts';
import { upgradeRequestRoutes } from './organizations/upgrade-requests.routes.ts';
import { replyRoutes } from './outbound/replies.routes.ts';
import { registerPages } from './pages/page-routes.ts';
import { authRoutes } from './people/auth.routes.ts';
import { deletionOfPeopleRoutes } from './people/deletion.routes.ts';
import { mfaRoutes } from './people/mfa.routes.ts';
import { noticeRoutes } from './people/notices.routes.ts';
import { passkeyRoutes } from './people/passkeys.routes.ts';
import { sessionRoutes } from './people/sessions.routes.ts';
import { userRoutes } from './people/user.routes.ts';
import { rawMailRoutes } from './providers/raw-mail.routes.ts';
import { sesNotificationRoutes } from './providers/ses-notifications.routes.ts';
import { refusalRoutes } from './refusals/refusals.routes.ts';
import { retentionPolicyRoutes } from './retention/retention-policy.routes.ts';
import type { RouteDependencies } from './route-dependencies.ts';
import { samlRoutes } from './sso/saml.routes.ts';
import { ssoConfigurationRoutes } from './sso/sso-configurations.routes.ts';
import { ssoLoginRoutes } from './sso/sso-login.routes.ts';
import { ssoSetupLinkRoutes } from './sso/sso-setup-links.routes.ts';
import { unsubscribeRoutes } from './unsubscribe/unsubscribe.routes.ts';
import { usageRoutes } from './usage/usage.routes.ts';
import { deliveryRoutes } from './webhooks/deliveries.routes.ts';
import { endpointOperationRoutes } from './webhooks/endpoint-operations.routes.ts';
import { endpointRoutes } from './webhooks/endpoints.routes.ts';

/** Registers every route of the API, one line per file. */
export async function registerRoutes(app: FastifyInstance, dependencies: RouteDependencies): Promise<void> {
  await app.register(
    async (v1) => {
      await v1.register(organizationRoutes(dependencies));
      await v1.register(environmentRoutes(dependencies));
      await v1.register(memberRoutes(dependencies));
      await v1.register(invitationRoutes(dependencies));
      await v1.register(policyRoutes(dependencies));
      await v1.register(auditLogRoutes(dependencies));
      await v1.register(upgradeRequestRoutes(dependencies));
      await v1.register(authRoutes(dependencies));
      await v1.register(mfaRoutes(dependencies));
      await v1.register(passkeyRoutes(dependencies));
      await v1.register(oauthRoutes(dependencies));
      await v1.register(userRoutes(dependencies));
      await v1.register(sessionRoutes(dependencies));
      await v1.register(noticeRoutes(dependencies));
      await v1.register(ssoConfigurationRoutes(dependencies));
      await v1.register(ssoSetupLinkRoutes(dependencies));
      await v1.register(ssoLoginRoutes(dependencies));
      await v1.register(samlRoutes(dependencies));
      await v1.register(deletionOfPeopleRoutes(dependencies));
      await v1.register(usageRoutes(dependencies));
      await v1.register(retentionPolicyRoutes(dependencies));
      await v1.register(billingRoutes(dependencies));
      await v1.register(stripeEventRoutes(dependencies));
      await v1.register(apiKeyRoutes(dependencies));
      await v1.register(domainRoutes(dependencies));
      await v1.register(inboxRoutes(dependencies));
      await v1.register(credentialRoutes(dependencies));
      await v1.register(draftRoutes(dependencies));
      await v1.register(approvalRoutes(dependencies));
      await v1.register(messageRoutes(dependencies));
      await v1.register(waitRoutes(dependencies));
      await v1.register(labelRoutes(dependencies));
      await v1.register(deletionRoutes(dependencies));
      await v1.register(attachmentRoutes(dependencies));
      await v1.register(replyRoutes(dependencies));
      await v1.register(rawRoutes(dependencies));
      await v1.register(threadRoutes(dependencies));
      await v1.register(suppressionRoutes(dependencies));
      await v1.register(refusalRoutes(dependencies));
      await v1.register(listRoutes(dependencies));
      await v1.register(exportRoutes(dependencies));
      await v1.register(rawMailRoutes(dependencies));
      await v1.register(sesNotificationRoutes(dependencies));
      for (const path of ['/webhooks/endpoints', '/webhook-endpoints'] as const) {
        await v1.register(endpointRoutes({ ...dependencies, path }));
        await v1.register(endpointOperationRoutes({ ...dependencies, path }));
      }
      await v1.register(deliveryRoutes(dependencies));
      await v1.register(metricRoutes(dependencies));
      await v1.register(eventRoutes(dependencies));
      await v1.register(eventStreamRoutes(dependencies));
      await v1.register(
        async (admin) => {
          await admin.register(staffRoutes());
          await admin.register(staffAuditLogRoutes(dependencies));
          await admin.register(toggleRoutes(dependencies));
          await admin.register(workflowRoutes(dependencies));
          await admin.register(staffJobRoutes(dependencies));
          await admin.register(impersonationRoutes(dependencies));
          await admin.register(adminHealthRoutes(dependencies));
          await admin.register(adminNotificationRoutes(dependencies));
          await admin.register(adminUserRoutes(dependencies));
          await admin.register(adminKeyRoutes(dependencies));
          await admin.register(staffMemberRoutes(dependencies));
          await admin.register(adminOrganizationRoutes(dependencies));
          await admin.register(suspensionRoutes(dependencies));
          await admin.register(adminLimitRoutes(dependencies));
          await admin.register(adminUsageRoutes(dependencies));
          await admin.register(adminUpgradeRequestRoutes(dependencies));
        },
        { prefix: '/admin' },
      );
    },
    { prefix: '/api/v1' },
  );
  await registerPages(app, dependencies);
  await app.register(unsubscribeRoutes(dependencies));
  // The specification defines these routes without the prefix.
  await app.register(billingRoutes({ ...dependencies, unversioned: true }));
  await app.register(stripeEventRoutes({ ...dependencies, unversioned: true }));
  await app.register(retentionPolicyRoutes({ ...dependencies, unversioned: true }));
  await app.register(exportRoutes({ ...dependencies, unversioned: true }));
  await app.register(adminUsageRoutes({ ...dependencies, unversioned: true }), { prefix: '/admin' });
}
