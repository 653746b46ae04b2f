import type { FastifyInstance } from 'fastify';
import { registerConsole } from '../console/console-routes.ts';
import type { RouteDependencies } from '../route-dependencies.ts';
import { accountPages } from './account.routes.ts';
import { approvalPages } from './approvals.routes.ts';
import { assetRoutes } from './assets.routes.ts';
import { billingPages } from './billing.routes.ts';
import { connectPages } from './connect.routes.ts';
import { deletionPages } from './deletion.routes.ts';
import { invitationPages } from './invitation.routes.ts';
import { organizationPages } from './organization.routes.ts';
import { organizationPeoplePages } from './organization-people.routes.ts';
import { installPages } from './pages.ts';
import { passkeyPages } from './passkey.routes.ts';
import { providerPages } from './providers.routes.ts';
import { sendingPolicyPages } from './sending-policies.routes.ts';
import { signInPages } from './sign-in.routes.ts';
import { signUpPages } from './sign-up.routes.ts';
import { ssoPages } from './sso.routes.ts';
import { ssoSetupPages } from './sso-setup.routes.ts';

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
      openSuspensions: dependencies.openSuspensions,
      hasBilling: config.BILLING_ENABLED,
    });
    const all = { ...dependencies, pages };
    await context.register(signInPages(all));
    await context.register(signUpPages(all));
    await context.register(accountPages(all));
    await context.register(passkeyPages(all));
    await context.register(providerPages(all));
    await context.register(organizationPages(all));
    await context.register(deletionPages(all));
    await context.register(organizationPeoplePages(all));
    await context.register(invitationPages(all));
    await context.register(ssoPages(all));
    await context.register(ssoSetupPages(all));
    await context.register(billingPages(all));
    await context.register(approvalPages(all));
    await context.register(connectPages(all));
    await context.register(sendingPolicyPages(all));
    await registerConsole(context, all);
  });
}
