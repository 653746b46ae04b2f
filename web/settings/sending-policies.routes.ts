import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { AFTER_ALARM, APPROVAL_MODES } from '../../domain/policies/organization-policies.entity.ts';
import type { PolicyService } from '../../domain/policies/policy.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import { type Pages, rejectionOf } from '../shell/pages.ts';

/** A field of a form that may be left empty. */
const positiveNumber = (digits: number) =>
  Type.Unsafe<string>({ type: 'string', maxLength: digits, pattern: '^(?:[1-9]\\d*)?$' });
const numberOf = (field: string): number | null => (field === '' ? null : Number(field));
const linesOf = (field: string): string[] => field.split(/[\s,]+/).filter(Boolean);

/** The policies for what members, keys and mail programs send. */
export const sendingPolicyPages =
  ({ pages, policies }: { pages: Pages; policies: PolicyService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      pages.send(request, reply, {
        template: 'settings/sending-policies',
        title: 'Policies for sending',
        problem,
        data: {
          policies: await policies.get(request.scope),
          organizationId: request.scope.organizationId,
        },
      });

    app.get(
      '/organization/sending-policies',
      {
        config: { permission: 'policies:manage' },
        schema: { operationId: 'pages.sendingPolicies', querystring: OrganizationQuery },
      },
      async (request, reply) => show(request, reply),
    );

    app.post(
      '/organization/sending-policies',
      {
        config: { permission: 'policies:manage' },
        schema: {
          operationId: 'pages.updateSendingPolicies',
          querystring: OrganizationQuery,
          body: strictObject({
            require_send_approval: enumOf(APPROVAL_MODES),
            after_alarm: enumOf(AFTER_ALARM),
            max_recipients_per_message: positiveNumber(2),
            daily_send_cap_per_inbox: positiveNumber(7),
            allowed_recipient_domains: text(51_000),
            blocked_recipient_domains: text(51_000),
            auto_submitted_header: Type.Optional(Type.Literal('on')),
          }),
        },
      },
      async (request, reply) => {
        const { scope, body } = request;
        const updating = policies.update(scope, {
          requireSendApproval: body.require_send_approval,
          afterAlarm: body.after_alarm,
          maxRecipientsPerMessage: numberOf(body.max_recipients_per_message),
          dailySendCapPerInbox: numberOf(body.daily_send_cap_per_inbox),
          allowedRecipientDomains: linesOf(body.allowed_recipient_domains),
          blockedRecipientDomains: linesOf(body.blocked_recipient_domains),
          autoSubmittedHeader: body.auto_submitted_header === 'on',
        });
        const problem = await rejectionOf(updating);
        if (problem) return show(request, reply, problem);
        return pages.seeOther(reply, `/organization/sending-policies?org=${scope.organizationId}`, 'saved');
      },
    );
    done();
  };
