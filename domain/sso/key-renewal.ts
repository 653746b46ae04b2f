import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { requireOrganizationWide } from '../identity/scope.ts';
import { auditConfiguration } from './change-configuration.ts';
import type { MetadataSource } from './metadata-source.ts';
import type { OidcLogin } from './oidc-login.ts';
import type { SamlClient } from './saml/saml-client.ts';
import { createSsoChecks, SsoRefusal, ssoTestFailed } from './sso-checks.ts';
import { storeMetadata } from './sso-metadata.ts';
import type { SsoScope } from './sso-scope.ts';
import { findSettingsById, type SsoSettings } from './sso-settings.ts';

/** Limits how often answers with forged signatures make the service call the identity provider. */
const MIN_INTERVAL_SECONDS = 30;

export type KeyRenewal = ReturnType<typeof createKeyRenewal>;

export interface KeyRenewalOptions {
  database: Database;
  secretBox: SecretBox;
  metadataSource: MetadataSource;
  oidc: OidcLogin;
  saml: SamlClient;
  logger: Pick<Logger, 'warn'>;
}

/** Reads the keys of identity providers again between their regular times. */
export function createKeyRenewal({
  database,
  secretBox,
  metadataSource,
  oidc,
  saml,
  logger,
}: KeyRenewalOptions) {
  const claim = (settings: SsoSettings, isOthersEnough: boolean) =>
    database.peopleTransaction(async ({ db }) => {
      const keysReadAt = await claimReading(db, settings, isOthersEnough);
      return keysReadAt === undefined ? undefined : { ...settings, keysReadAt };
    });

  /** @throws Error saying why the metadata cannot be read or used. */
  async function readMetadata({ id, issuer, idpMetadataUrl }: SsoSettings): Promise<string> {
    const url = idpMetadataUrl ?? '';
    const xml = await metadataSource.readNow(url);
    const metadata = saml.parseMetadata(xml);
    if (metadata.entityId !== issuer) throw new Error(`it describes ${metadata.entityId}`);
    await database.peopleTransaction(({ db }) => storeMetadata(db, { id, url, xml, metadata }));
    return xml;
  }

  async function read(settings: SsoSettings): Promise<void> {
    const checks = createSsoChecks();
    try {
      if (settings.type === 'oidc') await oidc.readProvider(settings, checks);
      else
        await readMetadata(settings).catch((error: unknown) =>
          checks.fail(
            'provider',
            error instanceof Error ? error.message : 'unknown',
            settings.idpMetadataUrl,
          ),
        );
    } catch (error) {
      throw error instanceof SsoRefusal ? ssoTestFailed(error.check, checks.all) : error;
    }
  }

  return {
    /**
     * Claims the right to read the keys again now: at most once in half a minute.
     *
     * @returns the settings to read the keys with; undefined if another login has just read them.
     */
    claim: (settings: SsoSettings): Promise<SsoSettings | undefined> => claim(settings, true),

    /** Reads metadata from its URL again, and stores it. @returns the metadata; undefined if it cannot be read now. */
    async renewMetadata(settings: SsoSettings): Promise<string | undefined> {
      if (settings.idpMetadataUrl === null || !(await claim(settings, true))) return undefined;
      return readMetadata(settings).catch((error: unknown) => {
        const { id: configurationId, organizationId } = settings;
        logger.warn({ configurationId, organizationId, err: error }, 'could not read SAML metadata again');
        return undefined;
      });
    },

    /**
     * Reads keys and metadata at a person's request.
     *
     * @throws AppError `not_found`; `conflict` without a URL; `rate_limited`; `unprocessable` if they cannot be read.
     */
    async readAgain(scope: SsoScope, configurationId: string): Promise<void> {
      requireOrganizationWide(scope);
      const settings = await database.peopleTransaction(({ db }) =>
        findSettingsById(db, secretBox, configurationId),
      );
      if (settings?.organizationId !== scope.organizationId)
        throw notFound('SSO configuration', configurationId);
      if (settings.type === 'saml' && settings.idpMetadataUrl === null) throw withoutUrl();
      const claimed = await claim(settings, false);
      if (!claimed) throw justRead();
      await read(claimed);
      await database.peopleTransaction(({ db }) =>
        auditConfiguration(db, scope, 'refreshed', settings.shownId),
      );
    },
  };
}

async function claimReading(
  db: Db,
  { id, keysReadAt }: SsoSettings,
  isOthersEnough: boolean,
): Promise<Date | undefined> {
  const claimed = await db
    .updateTable('sso_configurations')
    .set({ keys_read_at: sql<Date>`now()` })
    .where('id', '=', id)
    .where((eb) =>
      eb.or([
        eb('keys_read_at', 'is', null),
        eb('keys_read_at', '<', sql<Date>`now() - ${MIN_INTERVAL_SECONDS} * interval '1 second'`),
      ]),
    )
    .returning('keys_read_at as keysReadAt')
    .executeTakeFirst();
  if (claimed || !isOthersEnough) return claimed?.keysReadAt ?? undefined;
  const other = await db
    .selectFrom('sso_configurations')
    .select('keys_read_at as keysReadAt')
    .where('id', '=', id)
    .where('keys_read_at', 'is distinct from', keysReadAt)
    .executeTakeFirst();
  return other?.keysReadAt ?? undefined;
}

const withoutUrl = (): AppError =>
  new AppError('conflict', {
    detail: 'The metadata of this configuration has no URL from which it could be read.',
    fix: 'Send the new metadata: PATCH /api/v1/org/sso/{id} with idp_metadata_xml or idp_metadata_url.',
  });

const justRead = (): AppError =>
  new AppError('rate_limited', {
    detail: 'The identity provider was asked a moment ago.',
    fix: `Wait ${MIN_INTERVAL_SECONDS} s (see Retry-After).`,
    headers: { 'retry-after': String(MIN_INTERVAL_SECONDS) },
  });
