import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import type { Policies } from '../../domain/policies/find-policies.ts';
import type { AppError } from '../../platform/errors.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Notice } from '../shell/notices.ts';
import { rejectionOf } from '../shell/pages.ts';
import {
  finishOrganizationForm,
  type OrganizationPageDependencies,
  organizationPath,
  showOrganization,
} from './organization-page.ts';

/** The organization that `?org=` names: members, policies and the audit log, as far as the role allows. */
export const organizationPages =
  (dependencies: OrganizationPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, members, policies, policyPreviews } = dependencies;

    const show = (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      showOrganization(dependencies, request, reply, problem);
    const finish = (request: FastifyRequest, reply: FastifyReply, work: Promise<unknown>, notice: Notice) =>
      finishOrganizationForm(dependencies, request, reply, { work, notice });

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
        return finish(request, reply, members.changeRole(request.scope, userId, role), 'member-changed');
      },
    );

    app.post(
      '/organization/members/remove',
      {
        config: { permission: 'members:manage' },
        schema: {
          operationId: 'pages.removeMember',
          querystring: OrganizationQuery,
          body: strictObject({ user_id: text(64), keep_keys: Type.Optional(Type.Literal('on')) }),
        },
      },
      async (request, reply) => {
        const { user_id: userId, keep_keys: keepKeys } = request.body;
        const notice = keepKeys === undefined ? 'member-removed' : 'member-removed-without-keys';
        return finish(
          request,
          reply,
          members.remove(request.scope, userId, { revokeKeys: keepKeys === undefined }),
          notice,
        );
      },
    );

    const PoliciesForm = strictObject({
      require_mfa: Type.Optional(Type.Literal('on')),
      session_max_age_hours: Type.Unsafe<string>({ type: 'string', maxLength: 3, pattern: '^\\d*$' }),
      allowed_cidrs: text(6_500),
    });
    const readPolicies = (form: Static<typeof PoliciesForm>) => ({
      requireMfa: form.require_mfa === 'on',
      sessionMaxAgeHours: form.session_max_age_hours === '' ? null : Number(form.session_max_age_hours),
      allowedCidrs: form.allowed_cidrs.split(/\s+/).filter(Boolean),
    });

    app.post(
      '/organization/policies',
      {
        config: { permission: 'policies:manage' },
        schema: {
          operationId: 'pages.updatePolicies',
          querystring: OrganizationQuery,
          body: PoliciesForm,
        },
      },
      async (request, reply) => {
        return finish(request, reply, policies.update(request.scope, readPolicies(request.body)), 'saved');
      },
    );

    app.post(
      '/organization/policies/preview',
      {
        config: { permission: 'policies:manage' },
        schema: {
          operationId: 'pages.previewPolicies',
          querystring: OrganizationQuery,
          body: PoliciesForm,
        },
      },
      async (request, reply) => {
        const { requireMfa, allowedCidrs } = readPolicies(request.body);
        const previewing = policyPreviews.preview(request.scope, { requireMfa, allowedCidrs });
        const problem = await rejectionOf(previewing);
        if (problem) return show(request, reply, problem);
        return pages.send(request, reply, {
          template: 'settings/policy-preview',
          title: 'Who would not get in',
          data: { ...(await previewing), back: organizationPath(request) },
        });
      },
    );
    app.post(
      '/organization/support-access',
      {
        config: { permission: 'policies:manage' },
        schema: {
          operationId: 'pages.updateSupportAccess',
          querystring: OrganizationQuery,
          body: strictObject({ support_access: enumOf(['allowed', 'ask', 'ask_day', 'ask_week']) }),
        },
      },
      async (request, reply) => {
        const change = toSupportAccess(request.body.support_access);
        return finish(request, reply, policies.update(request.scope, change), 'saved');
      },
    );
    done();
  };

const HOUR_MS = 3_600_000;
const CONSENT_HOURS: Record<string, number> = { ask_day: 24, ask_week: 168 };

function toSupportAccess(choice: string): Pick<Policies, 'supportAccess' | 'supportAccessUntil'> {
  const hours = CONSENT_HOURS[choice];
  return {
    supportAccess: choice === 'allowed' ? 'allowed' : 'ask',
    supportAccessUntil: hours === undefined ? null : new Date(Date.now() + hours * HOUR_MS),
  };
}
