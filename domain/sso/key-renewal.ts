import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { MetadataSource } from './metadata-source.ts';
import type { OidcClient } from './oidc-client.ts';
import type { SamlClient } from './saml/saml-client.ts';
import { createSsoChecks, SsoRefusal, ssoTestFailed } from './sso-checks.ts';
import { auditConfiguration } from './sso-drafts.ts';
import { updateMetadata } from './sso-metadata.ts';
import type { SsoScope } from './sso-scope.ts';
import { oidcSettings, type SsoSettings } from './sso-settings.ts';

/** An answer with a forged signature must not make the service call the identity provider at every attempt. */
const MIN_INTERVAL_SECONDS = 30;

/** Reads the keys of identity providers again between their regular times. */
export interface KeyRenewal {
  /**
   * Whether the keys may be read again now: they were not within the last half minute, or another login has just caused it.
   *
   * @returns the settings to read them with; undefined if they were just read.
   */
  claim(settings: SsoSettings): Promise<SsoSettings | undefined>;
  /** Reads metadata from its URL again, and stores it. @returns the metadata, or undefined if that is not possible now. */
  renewMetadata(settings: SsoSettings): Promise<string | undefined>;
  /**
   * Reads keys and metadata because a person asks for it.
   *
   * @throws AppError `conflict` without a URL; `rate_limited`; `unprocessable` if they cannot be read.
   */
  readAgain(scope: SsoScope, settings: SsoSettings | undefined, configurationId: string): Promise<void>;
}

export interface KeyRenewalOptions {
  database: Database;
  metadataSource: MetadataSource;
  oidc: OidcClient;
  saml: SamlClient;
  logger: Pick<Logger, 'warn'>;
}

export function createKeyRenewal({
  database,
  metadataSource,
  oidc,
  saml,
  logger,
}: KeyRenewalOptions): KeyRenewal {
  const claim = (settings: SsoSettings, isOthersEnough: boolean) =>
    database.peopleTransaction(async ({ em }) => {
      const keysReadAt = await claimReading(em, settings, isOthersEnough);
      return keysReadAt === undefined ? undefined : { ...settings, keysReadAt };
    });

  /** @throws Error saying why the metadata cannot be read or used. */
  async function readMetadata({ id, issuer, idpMetadataUrl }: SsoSettings): Promise<string> {
    const url = idpMetadataUrl ?? '';
    const xml = await metadataSource.readNow(url);
    const metadata = saml.parseMetadata(xml);
    if (metadata.entityId !== issuer) throw new Error(`it describes ${metadata.entityId}`);
    await database.peopleTransaction(({ em }) => em.execute(updateMetadata({ id, url, xml, metadata })));
    return xml;
  }

  async function read(settings: SsoSettings): Promise<void> {
    const checks = createSsoChecks();
    try {
      if (settings.type === 'oidc') await oidc.readProvider(oidcSettings(settings, checks), checks);
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
    claim: (settings) => claim(settings, true),

    async renewMetadata(settings) {
      if (settings.idpMetadataUrl === null || !(await claim(settings, true))) return undefined;
      return readMetadata(settings).catch((error: unknown) => {
        const { id: configurationId, organizationId } = settings;
        logger.warn({ configurationId, organizationId, err: error }, 'could not read SAML metadata again');
        return undefined;
      });
    },

    async readAgain(scope, settings, configurationId) {
      if (settings?.organizationId !== scope.organizationId)
        throw notFound('SSO configuration', configurationId);
      if (settings.type === 'saml' && settings.idpMetadataUrl === null) throw withoutUrl();
      const claimed = await claim(settings, false);
      if (!claimed) throw justRead();
      await read(claimed);
      await database.peopleTransaction(({ em }) =>
        auditConfiguration(em, scope, 'refreshed', settings.shownId),
      );
    },
  };
}

async function claimReading(
  em: EntityManager,
  { id, keysReadAt }: SsoSettings,
  isOthersEnough: boolean,
): Promise<string | undefined> {
  const [row] = await em.execute<{ keysReadAt: string }[]>(sql`
    update sso_configurations set keys_read_at = now()
    where id = ${id}
      and (keys_read_at is null or keys_read_at < now() - ${MIN_INTERVAL_SECONDS} * interval '1 second')
    returning keys_read_at as "keysReadAt"`);
  if (row || !isOthersEnough) return row?.keysReadAt;
  const [other] = await em.execute<{ keysReadAt: string }[]>(sql`
    select keys_read_at as "keysReadAt" from sso_configurations
    where id = ${id} and keys_read_at is distinct from ${keysReadAt}::timestamptz`);
  return other?.keysReadAt;
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
