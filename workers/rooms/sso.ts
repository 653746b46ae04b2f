import { createMetadataSource } from '../../domain/sso/metadata-source.ts';
import { createSamlClient } from '../../domain/sso/saml/saml-client.ts';
import { refreshSsoMetadata, warnOfSsoCertificates } from '../../domain/sso/sso-metadata.ts';
import {
  purgeSsoAssertions,
  purgeSsoAttempts,
  purgeSsoSetupLinks,
  purgeSsoTransactions,
} from '../../domain/sso/sso-purges.ts';
import { createEgress, readEgressOptions } from '../../platform/egress/egress.ts';
import { createGuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import type { Room } from '../room.ts';

export const ssoRoom: Room = {
  maintenance: ({ config, database, logger, services: { notifications } }) => {
    const egress = readEgressOptions(config);
    const metadataSource = createMetadataSource(createGuardedFetch(createEgress(egress)));
    const { parseMetadata } = createSamlClient({
      publicUrl: config.PUBLIC_URL,
      allowHttp: !egress.requireHttps,
    });
    return {
      sweeps: {
        expiredSsoTransactions: () => purgeSsoTransactions(database),
        expiredSsoAssertions: () => purgeSsoAssertions(database),
        expiredSsoSetupLinks: () => purgeSsoSetupLinks(database),
        expiredSsoAttempts: () => purgeSsoAttempts(database),
        refreshedSsoMetadata: () => refreshSsoMetadata({ database, metadataSource, parseMetadata, logger }),
        endingSsoCertificates: () => warnOfSsoCertificates({ database, notifications }),
      },
    };
  },
};
