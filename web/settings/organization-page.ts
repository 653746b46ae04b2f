import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AnnouncementService } from '../../domain/announcements/announcement.service.ts';
import type { AuditLogService } from '../../domain/audit/audit-log.service.ts';
import type { BillingService } from '../../domain/billing/billing.service.ts';
import type { Permission } from '../../domain/identity/permissions.ts';
import { isRoleWithin, MEMBER_ROLES } from '../../domain/identity/roles.ts';
import type { InvitationService } from '../../domain/invitations/invitation.service.ts';
import type { MemberService } from '../../domain/organizations/member.service.ts';
import type { OrganizationService } from '../../domain/organizations/organization.service.ts';
import type { PolicyPreviewService } from '../../domain/people/policy-preview.service.ts';
import type { PolicyService } from '../../domain/policies/policy.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { formatDate, formatTime } from '../shell/formats.ts';
import type { Notice } from '../shell/notices.ts';
import { type Pages, rejectionOf } from '../shell/pages.ts';

export interface OrganizationPageDependencies {
  pages: Pages;
  organizations: OrganizationService;
  members: MemberService;
  invitations: InvitationService;
  policies: PolicyService;
  policyPreviews: PolicyPreviewService;
  auditLog: AuditLogService;
  announcements: AnnouncementService;
  /** Undefined: billing is switched off. */
  billing: BillingService | undefined;
}

const LISTED = { limit: 100, order: 'asc' } as const;
const LATEST = { limit: 20, order: 'desc' } as const;

/** The organization, as far as the role of the person allows. @param problem the rejection of a form on it. */
export async function showOrganization(
  {
    pages,
    organizations,
    members,
    invitations,
    policies,
    auditLog,
    announcements,
    billing,
  }: OrganizationPageDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  problem?: AppError,
): Promise<FastifyReply> {
  const { scope } = request;
  const can = (permission: Permission) => scope.permissions.has(permission);
  /** In a support session, staff see what people of the organization may change, as text. */
  const mayChange = (permission: Permission) => can(permission) && scope.impersonation === undefined;
  const role = scope.member?.role ?? 'viewer';
  const organization = await organizations.get(scope);
  const memberPage = can('members:read') ? await members.list(scope, LISTED) : undefined;
  const pending = can('members:manage')
    ? await invitations.list(scope, { status: 'pending' }, LISTED)
    : undefined;
  return pages.send(request, reply, {
    template: 'settings/organization',
    title: organization.name,
    problem,
    data: {
      organization,
      announcements: scope.member ? await announcements.shownTo(scope.member.person) : [],
      role,
      roles: MEMBER_ROLES.filter((other) => isRoleWithin(other, role)),
      mayChange,
      members: memberPage?.items ?? [],
      hasMoreMembers: memberPage?.next != null,
      invitations: pending?.items ?? [],
      policies: can('policies:manage') ? await policies.get(scope) : undefined,
      audit: can('audit:read') ? (await auditLog.list(scope, {}, LATEST)).items : [],
      ip: request.ip,
      date: formatDate,
      time: formatTime,
      sections: [
        ...(can('org:update') ? ['/settings/organization-settings'] : []),
        ...(can('members:read') ? ['/members/organization-members'] : []),
        ...(can('members:manage') ? ['/members/organization-invitations'] : []),
        ...(can('policies:manage') ? ['/settings/organization-policies'] : []),
        ...(can('sso:manage') ? ['/sso/organization-sign-on'] : []),
        ...(mayChange('billing:manage') && billing ? ['/billing/organization-billing'] : []),
        ...(can('audit:read') ? ['/audit-log/organization-audit'] : []),
        ...(mayChange('org:delete') ? ['/settings/organization-closing'] : []),
      ],
    },
  });
}

/** Goes back to the page after its form was accepted, or shows the page with the rejection. */
export async function finishOrganizationForm(
  dependencies: OrganizationPageDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  { work, notice }: { work: Promise<unknown>; notice: Notice },
): Promise<FastifyReply> {
  const problem = await rejectionOf(work);
  return problem
    ? showOrganization(dependencies, request, reply, problem)
    : dependencies.pages.seeOther(reply, organizationPath(request), notice);
}

export const organizationPath = ({ scope }: FastifyRequest): string =>
  `/organization?org=${scope.organizationId}`;
