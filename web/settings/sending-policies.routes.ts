import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { AFTER_ALARM, APPROVAL_MODES } from '../../domain/policies/organization-policies.entity.ts';
import type { PolicyService } from '../../domain/policies/policy.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { NumberField, OrganizationQuery, readNumber } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { settingsTabs } from './settings-tabs.ts';

const PATH = '/settings/sending';
const permission = 'policies:manage';
const linesOf = (field: string): string[] => field.split(/[\s,]+/).filter(Boolean);

/** The policies for what members, keys and mail programs send. */
export const sendingPolicyPages =
  ({ pages, policies }: { pages: Pages; policies: PolicyService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      pages.send(request, reply, {
        template: 'settings/sending-policies',
        title: 'Settings',
        problem,
        data: {
          tabs: settingsTabs(pages, request),
          policies: await policies.get(request.scope),
        },
        apiCall: { path: '/org/policies' },
      });

    app.get(
      '/settings/sending',
      {
        config: { permission },
        schema: { operationId: 'pages.sendingPolicies', querystring: OrganizationQuery },
      },
      async (request, reply) => show(request, reply),
    );

    pages.form(app, PATH, {
      config: { permission },
      schema: {
        operationId: 'pages.updateSendingPolicies',
        body: strictObject({
          require_send_approval: enumOf(APPROVAL_MODES),
          after_alarm: enumOf(AFTER_ALARM),
          max_recipients_per_message: NumberField,
          daily_send_cap_per_inbox: NumberField,
          allowed_recipient_domains: text(51_000),
          blocked_recipient_domains: text(51_000),
          auto_submitted_header: Type.Optional(Type.Literal('on')),
        }),
      },
      work: async ({ scope, body }) =>
        policies.update(scope, {
          requireSendApproval: body.require_send_approval,
          afterAlarm: body.after_alarm,
          maxRecipientsPerMessage: readNumber('max_recipients_per_message', body.max_recipients_per_message, {
            min: 1,
            max: 50,
          }),
          dailySendCapPerInbox: readNumber('daily_send_cap_per_inbox', body.daily_send_cap_per_inbox, {
            min: 1,
            max: 9_999_999,
          }),
          allowedRecipientDomains: linesOf(body.allowed_recipient_domains),
          blockedRecipientDomains: linesOf(body.blocked_recipient_domains),
          autoSubmittedHeader: body.auto_submitted_header === 'on',
        }),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, PATH), 'saved'),
    });
    done();
  };
