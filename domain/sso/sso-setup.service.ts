import { sql } from 'kysely';
import { createOneTimeToken, hashOneTimeToken } from '../../platform/crypto.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { Client } from '../identity/person.ts';
import type { SsoConfiguration } from './sso-configuration.entity.ts';
import type {
  ChangedConfiguration,
  NewSsoConfiguration,
  SsoConfigurationService,
} from './sso-configuration.service.ts';
import type { SsoConfigurationRow } from './sso-configuration-views.ts';
import type { SsoAttempt } from './sso-login.entity.ts';
import type { SsoLoginService, SsoStart } from './sso-login.service.ts';
import type { SsoScope } from './sso-scope.ts';
import { IS_LIVE_SETUP_LINK } from './sso-setup-link.service.ts';

/** The browser that has used a set-up link. */
export interface SetupGuest {
  /** From the cookie of the browser. */
  sessionToken: string | undefined;
  client: Client;
}

export interface SsoSetup {
  organizationName: string;
  /** Verified domains of the organization. */
  domains: string[];
  /** The guest's configuration; null before it is created. */
  configuration: SsoConfigurationRow | null;
  /** Whether the guest may change and test it. False once it has been active. */
  isChangeable: boolean;
  /** Latest first. */
  attempts: SsoAttempt[];
}

export type SsoSetupService = ReturnType<typeof createSsoSetupService>;

export interface SsoSetupOptions {
  database: Database;
  ssoConfigurations: SsoConfigurationService;
  ssoLogins: SsoLoginService;
}

export const SETUP_SESSION_SECONDS = 7_200;
const MAX_DOMAINS = 100;
const LATEST_ATTEMPTS = { limit: 5, order: 'desc' } as const;

interface LiveLink {
  id: string;
  organizationId: string;
  organizationName: string;
  createdBy: string;
  configurationId: string | null;
  domains: string[];
}

/**
 * What a person outside the organization may do with a set-up link: one draft, its tests, and nothing else. Each call requires
 * that the link is not revoked, the organization is active and the creator of the link may still set up single sign-on.
 */
export function createSsoSetupService(options: SsoSetupOptions) {
  const { database, ssoConfigurations, ssoLogins } = options;

  async function enter({ sessionToken, client }: SetupGuest): Promise<{ link: LiveLink; scope: SsoScope }> {
    const link = sessionToken === undefined ? undefined : await findBySession(database, sessionToken);
    if (!link) throw setupEnded();
    return { link, scope: scopeOf(link, client) };
  }

  async function findConfiguration({ configurationId }: LiveLink, scope: SsoScope) {
    return configurationId === null ? null : ssoConfigurations.get(scope, configurationId);
  }

  return {
    /** Changes nothing. Undefined unless the link can be used. */
    preview: (token: string): Promise<{ organizationName: string } | undefined> =>
      database.peopleTransaction(({ db }) =>
        db
          .selectFrom('sso_setup_links as l')
          .innerJoin('organizations as o', 'o.id', 'l.org_id')
          .select('o.name as organizationName')
          .where('l.token_hash', '=', hashOneTimeToken(token))
          .where('l.used_at', 'is', null)
          .where(IS_LIVE_SETUP_LINK)
          .executeTakeFirst(),
      ),

    /** Uses up the link. @returns the token of the session, for a cookie. @throws AppError `invalid_credentials`. */
    exchange: (token: string, client: Client): Promise<string> =>
      database.peopleTransaction(async ({ db }) => {
        const session = createOneTimeToken();
        const link = await useLink(db, token, session.hash);
        const scope = scopeOf(link, client);
        await recordAudit(db, scope, {
          action: 'sso_setup_link.used',
          resourceType: 'sso_setup_link',
          resourceId: link.id,
          details: scope.auditDetails ?? {},
        });
        return session.token;
      }, client.requestId),

    /** @throws AppError `invalid_credentials`, as do all functions below. */
    async read(guest: SetupGuest): Promise<SsoSetup> {
      const { link, scope } = await enter(guest);
      const configuration = await findConfiguration(link, scope);
      const isChangeable = configuration === null || isDraft(configuration);
      const attempts =
        // The attempts of an active configuration are logins of its members.
        configuration && isChangeable
          ? (await ssoConfigurations.listAttempts(scope, configuration.id, LATEST_ATTEMPTS)).items
          : [];
      const { organizationName, domains } = link;
      return { organizationName, domains, configuration, isChangeable, attempts };
    },

    /** Creates the draft, or changes it. @throws AppError as `SsoConfigurationService.create`; `conflict` once it was active. */
    async save(guest: SetupGuest, input: NewSsoConfiguration): Promise<void> {
      const { link, scope } = await enter(guest);
      const { type, ...change } = input;
      const configuration = await findConfiguration(link, scope);
      const onChange = ({ db }: Transaction, changed: ChangedConfiguration) =>
        claimDraft(db, link.id, changed);
      if (!configuration) return void (await ssoConfigurations.create(scope, input, onChange));
      if (configuration.type !== type) throw otherType();
      await ssoConfigurations.update(scope, configuration.id, change, onChange);
    },

    /** @throws AppError as `SsoLoginService.startTest`; `conflict` without a draft, and once it was active. */
    async startTest(guest: SetupGuest, browserToken: string | undefined): Promise<SsoStart> {
      const { link, scope } = await enter(guest);
      const configuration = await findConfiguration(link, scope);
      if (!configuration) throw noDraft();
      requireDraft(configuration);
      return ssoLogins.startTest(scope, configuration.id, { redirectTo: '/sso-setup', browserToken });
    },
  };
}

const CREATED_BY = sql<string>`coalesce(l.created_by_user_id, l.created_by_key_id)`.as('createdBy');

/** Of two concurrent uses, one succeeds. */
function useLink(
  db: Db,
  token: string,
  sessionHash: Buffer,
): Promise<Pick<LiveLink, 'id' | 'organizationId' | 'createdBy'>> {
  return db
    .updateTable('sso_setup_links as l')
    .from('organizations as o')
    .set({
      used_at: sql<Date>`now()`,
      session_hash: sessionHash,
      expires_at: sql<Date>`now() + ${SETUP_SESSION_SECONDS} * interval '1 second'`,
    })
    .whereRef('o.id', '=', 'l.org_id')
    .where('l.token_hash', '=', hashOneTimeToken(token))
    .where('l.used_at', 'is', null)
    .where(IS_LIVE_SETUP_LINK)
    .returning(['l.id', 'l.org_id as organizationId', CREATED_BY])
    .executeTakeFirstOrThrow(setupEnded);
}

/** Assigns the draft to the link, unless the link has another draft or has ended since the request began. */
async function claimDraft(db: Db, linkId: string, configuration: ChangedConfiguration): Promise<void> {
  requireDraft(configuration);
  const { id } = configuration;
  await db
    .updateTable('sso_setup_links')
    .set({ configuration_id: id })
    .where('id', '=', linkId)
    .where((eb) => eb.or([eb('configuration_id', 'is', null), eb('configuration_id', '=', id)]))
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .returning('id')
    .executeTakeFirstOrThrow(hasDraft);
}

function findBySession(database: Database, sessionToken: string): Promise<LiveLink | undefined> {
  return database.peopleTransaction(({ db }) =>
    db
      .selectFrom('sso_setup_links as l')
      .innerJoin('organizations as o', 'o.id', 'l.org_id')
      .select((eb) => [
        'l.id',
        'l.org_id as organizationId',
        'o.name as organizationName',
        CREATED_BY,
        'l.configuration_id as configurationId',
        sql<string[]>`array(${eb
          .selectFrom('domains as d')
          .select('d.domain_name')
          .whereRef('d.org_id', '=', 'o.id')
          .where('d.verification_status', '=', 'verified')
          .orderBy('d.domain_name')
          .limit(MAX_DOMAINS)})`.as('domains'),
      ])
      .where('l.session_hash', '=', hashOneTimeToken(sessionToken))
      .where(IS_LIVE_SETUP_LINK)
      .executeTakeFirst(),
  );
}

/** The audit log names the link as the actor, and adds its creator. */
const scopeOf = (
  { id, organizationId, createdBy }: Pick<LiveLink, 'id' | 'organizationId' | 'createdBy'>,
  { ip, requestId }: Client,
): SsoScope => ({
  organizationId,
  environmentBound: false,
  actor: { kind: 'system', id },
  ip,
  requestId,
  auditDetails: { setup_link_id: id, created_by: createdBy },
});

const isDraft = ({ activatedAt }: Pick<SsoConfiguration, 'activatedAt'>): boolean => activatedAt === null;

function requireDraft(configuration: Pick<SsoConfiguration, 'activatedAt'>): void {
  if (isDraft(configuration)) return;
  throw new AppError('conflict', {
    detail: 'The configuration has been activated. Its organization manages it now.',
    fix: 'Ask an administrator of the organization to change it.',
  });
}

const setupEnded = (): AppError =>
  new AppError('invalid_credentials', {
    detail: 'The set-up link is not valid: it was used, has expired or was revoked.',
    fix: 'Ask the administrator who sent it for another link.',
  });

const noDraft = (): AppError =>
  new AppError('conflict', { detail: 'There is no draft yet.', fix: 'Create it first.' });

const hasDraft = (): AppError =>
  new AppError('conflict', {
    detail: 'The draft already exists.',
    fix: 'Reload the page, and change it there.',
  });

const otherType = (): AppError =>
  new AppError('conflict', {
    detail: 'The draft has another type.',
    fix: 'Ask an administrator of the organization to delete the draft, then create another one.',
  });
