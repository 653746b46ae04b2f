import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Cookies } from '../../api/plugins/cookies.ts';
import type { Permission } from '../../domain/identity/permissions.ts';
import { ROLE_PERMISSIONS } from '../../domain/identity/roles.ts';
import type { Environment } from '../../domain/organizations/environment.entity.ts';
import { DEFAULT_ENVIRONMENT_SLUG } from '../../domain/organizations/environment.entity.ts';
import type { EnvironmentService } from '../../domain/organizations/environment.service.ts';
import type { AccountService, Membership } from '../../domain/people/account.service.ts';
import { type Query, withQuery } from './links.ts';
import { SCREENS, type Screen } from './navigation.ts';

/** The frame of the pages of one signed-in person. */
export interface Shell {
  /** Undefined in a support session: staff see an organization, not their own account. */
  person: { email: string; name: string | null } | undefined;
  /** The person's open organizations. */
  organizations: Membership[];
  /** The organization that the page shows, or that the person looked at last. */
  organizationId: string | undefined;
  environments: Environment[];
  environmentId: string | undefined;
  screens: readonly Screen[];
  /** Adds `org` and `env` where the path alone does not lead to what the page shows. */
  link(path: string, query?: Query): string;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Unset on pages that need no session. */
    shell?: Shell;
  }
}

const ORGANIZATION_COOKIE = 'organization';
const ORGANIZATION_COOKIE_SECONDS = 365 * 86_400;
/** More than an organization may have. */
const ENVIRONMENTS = { limit: 100, order: 'asc' } as const;

export interface ShellOptions {
  accounts: AccountService;
  environments: EnvironmentService;
  cookies: Cookies;
}

/** Loads the frame once a request: the person with their organizations, and the environments of the shown one. */
export function createShells({ accounts, environments, cookies }: ShellOptions) {
  /** The organization that a person of several looked at last, in this browser. */
  const lastOrganization = (request: FastifyRequest, organizations: readonly Membership[]) => {
    const id = cookies.read(request, ORGANIZATION_COOKIE);
    return organizations.find(({ organizationId }) => organizationId === id)?.organizationId;
  };

  async function loadOfPerson(request: FastifyRequest, userId: string): Promise<Shell> {
    const { scope } = request;
    const [account, page] = await Promise.all([
      accounts.get(userId),
      scope ? environments.list(scope, ENVIRONMENTS) : undefined,
    ]);
    const organizations = account.organizations.filter(({ deletedAt }) => deletedAt === null);
    const organizationId =
      scope?.organizationId ?? lastOrganization(request, organizations) ?? organizations[0]?.organizationId;
    const role = organizations.find((each) => each.organizationId === organizationId)?.role;
    const permissions = scope?.permissions ?? new Set<Permission>(role ? ROLE_PERMISSIONS[role] : []);
    return createShell({
      person: account,
      organizations,
      organizationId,
      environments: page?.items ?? [],
      environmentId: scope?.environmentId,
      permissions,
    });
  }

  return {
    /** Sets `request.shell`, if the request has a session. */
    async load(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const { scope, person } = request;
      if (scope?.impersonation) {
        const { items } = await environments.list(scope, ENVIRONMENTS);
        request.shell = createShell({
          person: undefined,
          organizations: [],
          organizationId: scope.organizationId,
          environments: items,
          environmentId: scope.environmentId,
          permissions: scope.permissions,
        });
        return;
      }
      const signedIn = scope?.member?.person ?? person;
      if (!signedIn || signedIn.kind === 'enroll') return;
      request.shell = await loadOfPerson(request, signedIn.userId);
      if (scope && request.shell.organizations.length > 1)
        cookies.set(reply, ORGANIZATION_COOKIE, scope.organizationId, {
          maxAgeSeconds: ORGANIZATION_COOKIE_SECONDS,
        });
    },
    /** For a request of a person of several organizations that names none; undefined if they have looked at none. */
    async findLastOrganization(request: FastifyRequest): Promise<string | undefined> {
      const session = await request.findSession();
      if (!session) return undefined;
      return lastOrganization(request, await accounts.listOrganizations(session.person.userId));
    },
  };
}

function createShell({
  permissions,
  ...shown
}: Omit<Shell, 'link' | 'screens'> & { permissions: ReadonlySet<Permission> }): Shell {
  const { organizations, organizationId, environments, environmentId } = shown;
  const isDefault = environments.some(
    ({ id, slug }) => id === environmentId && slug === DEFAULT_ENVIRONMENT_SLUG,
  );
  const selection = {
    org: organizations.length > 1 ? organizationId : undefined,
    env: isDefault ? undefined : environmentId,
  };
  return {
    ...shown,
    screens: organizationId
      ? SCREENS.filter(({ permission }) => permission === undefined || permissions.has(permission))
      : [],
    link: (path, query = {}) => withQuery(path, { ...selection, ...query }),
  };
}
