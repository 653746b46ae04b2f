import type { Logger } from 'pino';
import { createTargetCheck, type EgressOptions } from '../../platform/egress/egress.ts';
import type { GuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import { createOidcClient } from '../../platform/oidc-client.ts';
import type { OptionsOf } from '../../platform/options-of.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { PeopleDependencies } from '../people/create-people.ts';
import { createBreakGlass } from './break-glass.ts';
import { createKeyRenewal } from './key-renewal.ts';
import { createMetadataSource } from './metadata-source.ts';
import { createOidcLogin } from './oidc-login.ts';
import { createSamlClient } from './saml/saml-client.ts';
import { createSsoActivationService } from './sso-activation.service.ts';
import { createSsoConfigurationService } from './sso-configuration.service.ts';
import { createSsoLinkService } from './sso-link.service.ts';
import { createSsoLoginService } from './sso-login.service.ts';
import { createSsoSetupService } from './sso-setup.service.ts';
import { createSsoSetupLinkService } from './sso-setup-link.service.ts';

type Options = PeopleDependencies &
  Pick<OptionsOf<typeof createSsoActivationService>, 'ownerNotices'> & {
    ownerNotifications: NotificationService;
    egressOptions: EgressOptions;
    /** Refuses addresses that the egress rules forbid. */
    guardedFetch: GuardedFetch;
    publicUrl: string;
    logger: Logger;
  };

/** Single sign-on of organizations. */
export function createSso(options: Options) {
  const { database, secretBox, ownDomains, ownerNotices, ownerNotifications, guardedFetch, publicUrl } =
    options;
  const allowHttp = !options.egressOptions.requireHttps;
  const saml = createSamlClient({ publicUrl, allowHttp });
  const oidc = createOidcLogin(
    createOidcClient({ fetch: guardedFetch, allowHttp }),
    `${publicUrl}/api/v1/auth/sso/oidc/callback`,
  );
  const metadataSource = createMetadataSource(guardedFetch);
  const ssoConfigurations = createSsoConfigurationService({
    database,
    secretBox,
    findTargetRefusal: createTargetCheck(options.egressOptions),
    ownDomains,
    metadataSource,
    parseMetadata: saml.parseMetadata,
  });
  const ssoKeyRenewal = createKeyRenewal({ ...options, metadataSource, oidc, saml });
  const signIn = { ...options, oidc, saml };
  const ssoLogins = createSsoLoginService({ ...signIn, keyRenewal: ssoKeyRenewal });
  return {
    ssoConfigurations,
    ssoLogins,
    ssoKeyRenewal,
    ssoLinks: createSsoLinkService(signIn),
    ssoActivations: createSsoActivationService({
      database,
      secretBox,
      notifications: ownerNotifications,
      ownerNotices,
      parseMetadata: saml.parseMetadata,
    }),
    ssoSetupLinks: createSsoSetupLinkService(options),
    ssoSetup: createSsoSetupService({ database, ssoConfigurations, ssoLogins }),
    ssoBreakGlass: createBreakGlass({ database, notifications: ownerNotifications }),
  };
}
