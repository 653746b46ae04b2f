import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AnnouncementService } from '../../domain/announcements/announcement.service.ts';
import type { OauthService } from '../../domain/oauth/oauth.service.ts';
import type { OauthLinkService } from '../../domain/oauth/oauth-link.service.ts';
import type { AccountService } from '../../domain/people/account.service.ts';
import type { MfaService } from '../../domain/people/mfa.service.ts';
import type { SessionService } from '../../domain/sessions/session.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { describeClient, formatDate } from '../shell/formats.ts';
import type { Pages } from '../shell/pages.ts';

export interface AccountPageDependencies {
  pages: Pages;
  accounts: AccountService;
  mfa: MfaService;
  sessions: SessionService;
  oauth: OauthService;
  oauthLinks: OauthLinkService;
  announcements: AnnouncementService;
}

/** The person's account. @param problem the rejection of a form on it. */
export async function showAccount(
  { pages, accounts, mfa, sessions, oauth, oauthLinks, announcements }: AccountPageDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  problem?: AppError,
): Promise<FastifyReply> {
  const { person } = request;
  const isEnrollmentOnly = person.kind === 'enroll';
  const [account, shown, status, active, links, organizations] = await Promise.all([
    accounts.get(person.userId),
    announcements.shownTo(person),
    mfa.status(person),
    isEnrollmentOnly ? [] : sessions.list(person),
    isEnrollmentOnly ? [] : oauthLinks.list(person),
    isEnrollmentOnly ? [] : accounts.listOrganizations(person.userId),
  ]);
  const linked = new Set(links.map(({ provider }) => provider));
  return pages.send(request, reply, {
    template: 'account/account',
    title: 'Account',
    problem,
    data: {
      account,
      announcements: shown,
      mfa: status,
      sessions: active,
      links,
      closedOrganizations: organizations.filter(({ deletedAt }) => deletedAt !== null),
      otherProviders: oauth.providers().filter(({ id }) => !linked.has(id)),
      isEnrollmentOnly,
      date: formatDate,
      browserName: describeClient,
      scripts: PASSKEY_SCRIPTS,
    },
  });
}

/** In this order: the second uses the first. */
export const PASSKEY_SCRIPTS = ['/assets/simplewebauthn-browser.js', '/assets/passkeys.js'];

/** After the first factor. */
export function showRecoveryCodes(
  pages: Pages,
  request: FastifyRequest,
  reply: FastifyReply,
  codes: string[],
): FastifyReply {
  return pages.send(request, reply, {
    template: 'account/recovery-codes',
    title: 'Your recovery codes',
    data: { codes, file: encodeURIComponent(`${codes.join('\n')}\n`) },
  });
}
