import type { FastifyInstance } from 'fastify';
import type { RouteDependencies } from '../api/route-dependencies.ts';
import { createSecretBox } from '../platform/crypto.ts';
import { accountPages } from './account/account.routes.ts';
import { deletionPages } from './account/deletion.routes.ts';
import { passkeyPages } from './account/passkey.routes.ts';
import { providerPages } from './account/providers.routes.ts';
import { approvalPages } from './approvals/approvals.routes.ts';
import { auditLogPages } from './audit-log/audit-log.routes.ts';
import { billingPages } from './billing/billing.routes.ts';
import { componentPages } from './components/components.routes.ts';
import { connectPages } from './connect/connect.routes.ts';
import { domainPages } from './domains/domains.routes.ts';
import { draftPages } from './drafts/drafts.routes.ts';
import { composePages } from './inboxes/compose.routes.ts';
import { inboxPages } from './inboxes/inbox.routes.ts';
import { inboxSettingsPages } from './inboxes/inbox-settings.routes.ts';
import { inboxesPages } from './inboxes/inboxes.routes.ts';
import { connectionPages } from './keys/connections.routes.ts';
import { keyDetailPages } from './keys/key-detail.routes.ts';
import { keyPages } from './keys/keys.routes.ts';
import { invitationPages } from './members/invitation.routes.ts';
import { memberPages } from './members/members.routes.ts';
import { mailPages } from './messages/mail.routes.ts';
import { createFirstKey } from './overview/first-key.ts';
import { overviewPages } from './overview/overview.routes.ts';
import { listPages } from './reputation/lists.routes.ts';
import { reputationPages } from './reputation/reputation.routes.ts';
import { requestPages } from './requests/requests.routes.ts';
import { environmentPages } from './settings/environments.routes.ts';
import { formerPaths } from './settings/former-paths.routes.ts';
import { policyPages } from './settings/policies.routes.ts';
import { sendingPolicyPages } from './settings/sending-policies.routes.ts';
import { settingsPages } from './settings/settings.routes.ts';
import { assetRoutes } from './shell/assets.routes.ts';
import { installPages } from './shell/pages.ts';
import { signInPages } from './sign-in/sign-in.routes.ts';
import { signUpPages } from './sign-in/sign-up.routes.ts';
import { singleSignOnPages } from './sso/single-sign-on.routes.ts';
import { ssoPages } from './sso/sso.routes.ts';
import { ssoSetupPages } from './sso/sso-setup.routes.ts';
import { registerConsole } from './staff/console-routes.ts';
import { usagePages } from './usage/usage.routes.ts';
import { deliveryPages } from './webhooks/delivery.routes.ts';
import { endpointPages } from './webhooks/endpoint.routes.ts';
import { webhookPages } from './webhooks/webhooks.routes.ts';

/** Registers every page for people, one line per file. */
export async function registerPages(app: FastifyInstance, dependencies: RouteDependencies): Promise<void> {
  await app.register(assetRoutes());
  await app.register(async (context) => {
    const { config, cookies, browserSession } = dependencies;
    const pages = await installPages(context, {
      signingKey: config.SIGNING_KEY,
      publicUrl: config.PUBLIC_URL,
      cookies,
      browserSession,
      lists: dependencies.lists,
      accounts: dependencies.accounts,
      environments: dependencies.environments,
      eventStreams: dependencies.eventStreams,
      openResponses: dependencies.openResponses,
      openSuspensions: dependencies.openSuspensions,
      hasBilling: config.BILLING_ENABLED,
    });
    const firstKey = createFirstKey({ cookies, secretBox: createSecretBox(config.ENCRYPTION_KEY) });
    const all = { ...dependencies, pages, firstKey };
    app.standalonePages.render = pages.renderStandalone;
    await context.register(overviewPages(all));
    await context.register(inboxesPages(all));
    await context.register(inboxPages(all));
    await context.register(inboxSettingsPages(all));
    await context.register(composePages(all));
    await context.register(signInPages(all));
    await context.register(signUpPages(all));
    await context.register(accountPages(all));
    await context.register(passkeyPages(all));
    await context.register(providerPages(all));
    await context.register(deletionPages(all));
    await context.register(memberPages(all));
    await context.register(settingsPages(all));
    await context.register(formerPaths());
    await context.register(environmentPages(all));
    await context.register(policyPages(all));
    await context.register(auditLogPages(all));
    await context.register(invitationPages(all));
    await context.register(ssoPages(all));
    await context.register(singleSignOnPages(all));
    await context.register(ssoSetupPages(all));
    await context.register(keyPages(all));
    await context.register(keyDetailPages(all));
    await context.register(connectionPages(all));
    await context.register(requestPages(all));
    await context.register(usagePages(all));
    await context.register(billingPages(all));
    await context.register(mailPages(all));
    await context.register(approvalPages(all));
    await context.register(draftPages(all));
    await context.register(domainPages(all));
    await context.register(reputationPages(all));
    await context.register(listPages(all));
    await context.register(connectPages(all));
    await context.register(sendingPolicyPages(all));
    await context.register(webhookPages(all));
    await context.register(endpointPages(all));
    await context.register(deliveryPages(all));
    if (config.NODE_ENV !== 'production') await context.register(componentPages(all));
    await registerConsole(context, all);
  });
}
