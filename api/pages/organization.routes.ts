import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { ApiKeyService } from '../../domain/api-keys/api-key.service.ts';
import type { AuditLogService } from '../../domain/audit/audit-log.service.ts';
import { KEY_PERMISSIONS, type Permission } from '../../domain/identity/permissions.ts';
import { isRoleWithin, MEMBER_ROLES } from '../../domain/identity/roles.ts';
import type { MemberService } from '../../domain/organizations/member.service.ts';
import type { OrganizationService } from '../../domain/organizations/organization.service.ts';
import type { PolicyService } from '../../domain/policies/policy.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { enumOf, strictObject, text } from '../schemas.ts';
import { formatDate, formatTime } from './formats.ts';
import { OrganizationQuery } from './forms.ts';
import { type Pages, rejectionOf } from './pages.ts';

export interface OrganizationPageDependencies {
  pages: Pages;
  organizations: OrganizationService;
  members: MemberService;
  apiKeys: ApiKeyService;
  policies: PolicyService;
  auditLog: AuditLogService;
}

const LISTED = { limit: 100, order: 'asc' } as const;
const LATEST = { limit: 20, order: 'desc' } as const;

/** The organization that `?org=` names: members, API keys, policies and the audit log, as far as the role allows. */
export const organizationPages =
  (dependencies: OrganizationPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, organizations, members, apiKeys, policies, auditLog } = dependencies;

    async function show(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { scope } = request;
      const can = (permission: Permission) => scope.permissions.has(permission);
      const role = scope.member?.role ?? 'viewer';
      const organization = await organizations.get(scope);
      const memberPage = can('members:read') ? await members.list(scope, LISTED) : undefined;
      return pages.send(request, reply, {
        template: 'organization',
        title: organization.name,
        problem,
        data: {
          organization,
          role,
          roles: MEMBER_ROLES.filter((other) => isRoleWithin(other, role)),
          can,
          members: memberPage?.items ?? [],
          hasMoreMembers: memberPage?.next != null,
          keys: can('keys:manage') ? (await apiKeys.list(scope, {}, { ...LISTED, order: 'desc' })).items : [],
          policies: can('policies:manage') ? await policies.get(scope) : undefined,
          audit: can('audit:read') ? (await auditLog.list(scope, {}, LATEST)).items : [],
          ip: request.ip,
          date: formatDate,
          time: formatTime,
          sections: [
            ...(can('members:read') ? ['members'] : []),
            ...(can('keys:manage') ? ['keys'] : []),
            ...(can('policies:manage') ? ['policies'] : []),
            ...(can('sso:manage') ? ['sign-on'] : []),
            ...(can('audit:read') ? ['audit'] : []),
          ],
        },
      });
    }

    const home = ({ scope }: FastifyRequest) => `/organization?org=${scope.organizationId}`;

    app.get(
      '/organization',
      {
        config: { permission: 'inboxes:read' },
        schema: { operationId: 'pages.organization', querystring: OrganizationQuery },
      },
      async (request, reply) => show(request, reply),
    );

    app.post(
      '/organization/members/role',
      {
        config: { permission: 'members:manage' },
        schema: {
          operationId: 'pages.changeMemberRole',
          querystring: OrganizationQuery,
          body: strictObject({ user_id: text(64), role: enumOf(MEMBER_ROLES) }),
        },
      },
      async (request, reply) => {
        const { user_id: userId, role } = request.body;
        const problem = await rejectionOf(members.changeRole(request.scope, userId, role));
        return problem
          ? show(request, reply, problem)
          : pages.seeOther(reply, home(request), 'member-changed');
      },
    );

    app.post(
      '/organization/members/remove',
      {
        config: { permission: 'members:manage' },
        schema: {
          operationId: 'pages.removeMember',
          querystring: OrganizationQuery,
          body: strictObject({ user_id: text(64) }),
        },
      },
      async (request, reply) => {
        const problem = await rejectionOf(
          members.remove(request.scope, request.body.user_id, { revokeKeys: true }),
        );
        return problem
          ? show(request, reply, problem)
          : pages.seeOther(reply, home(request), 'member-removed');
      },
    );

    app.post(
      '/organization/keys',
      {
        config: { permission: 'keys:manage' },
        schema: {
          operationId: 'pages.createKey',
          querystring: OrganizationQuery,
          body: strictObject({ name: text(100), preset: enumOf(['agent', 'all']) }),
        },
      },
      async (request, reply) => {
        const { scope, body } = request;
        const creating = apiKeys.create(scope, {
          name: body.name,
          ...(body.preset === 'all'
            ? { permissions: KEY_PERMISSIONS.filter((name) => scope.permissions.has(name)) }
            : {}),
        });
        const problem = await rejectionOf(creating);
        if (problem) return show(request, reply, problem);
        return pages.send(request, reply, {
          template: 'api-key',
          title: 'Your new API key',
          data: { name: body.name, token: (await creating).token, organizationId: scope.organizationId },
        });
      },
    );

    app.post(
      '/organization/keys/revoke',
      {
        config: { permission: 'keys:manage' },
        schema: {
          operationId: 'pages.revokeKey',
          querystring: OrganizationQuery,
          body: strictObject({ key_id: text(64) }),
        },
      },
      async (request, reply) => {
        const revoking = apiKeys.revoke(request.scope, request.body.key_id, { children: false });
        const problem = await rejectionOf(revoking);
        return problem ? show(request, reply, problem) : pages.seeOther(reply, home(request), 'key-revoked');
      },
    );

    app.post(
      '/organization/policies',
      {
        config: { permission: 'policies:manage' },
        schema: {
          operationId: 'pages.updatePolicies',
          querystring: OrganizationQuery,
          body: strictObject({
            require_mfa: Type.Optional(Type.Literal('on')),
            session_max_age_hours: Type.Unsafe<string>({ type: 'string', maxLength: 3, pattern: '^\\d*$' }),
            allowed_cidrs: text(6_500),
          }),
        },
      },
      async (request, reply) => {
        const { require_mfa: mfa, session_max_age_hours: hours, allowed_cidrs: cidrs } = request.body;
        const change = {
          requireMfa: mfa === 'on',
          sessionMaxAgeHours: hours === '' ? null : Number(hours),
          allowedCidrs: cidrs.split(/\s+/).filter(Boolean),
        };
        const problem = await rejectionOf(policies.update(request.scope, change));
        return problem ? show(request, reply, problem) : pages.seeOther(reply, home(request), 'saved');
      },
    );
    done();
  };
