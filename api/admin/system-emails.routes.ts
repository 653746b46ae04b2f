import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type {
  RetryResult,
  SystemEmail,
  SystemEmailService,
} from '../../domain/administration/system-email.service.ts';
import { NOTIFICATION_STATUSES } from '../../domain/notifications/notification.entity.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import { Note } from './note.ts';
import { MAX_BULK_ITEMS } from './organizations.schemas.ts';

export const SystemEmailRecord = resource(
  'system_email',
  {
    id: id('Id (ntf_…).'),
    template: text(100, { description: 'What kind of email it is, for example reset-password.' }),
    status: enumOf(NOTIFICATION_STATUSES),
    to: text(320, { description: 'Address of the recipient, as of when the email was created.' }),
    org_id: nullableText(128, { description: 'Null for an email about a person’s own account.' }),
    user_id: nullableText(128, { description: 'Null for a person who is not a user yet.' }),
    attempts: Type.Integer({ minimum: 0 }),
    last_error: nullableText(2_000, { description: 'Why it failed, or the last answer of the relay.' }),
    next_attempt_at: nullableTimestamp('Null once it is sent or has failed.'),
    link_expires_at: nullableTimestamp(
      'When the link in it stops working, after which it is not sent again; null without one.',
    ),
    created_at: timestamp(),
    sent_at: nullableTimestamp(),
  },
  { $id: 'SystemEmail', title: 'SystemEmail' },
);

export const RetrySystemEmails = strictObject(
  {
    ids: Type.Array(id('Id (ntf_…).'), { minItems: 1, maxItems: MAX_BULK_ITEMS }),
    note: Note,
  },
  { $id: 'RetrySystemEmails', title: 'RetrySystemEmails' },
);

export const RetriedSystemEmails = resource(
  'system_email_retry',
  {
    results: Type.Array(
      resource('system_email_retry_result', {
        id: text(128),
        status: enumOf(['done', 'failed']),
        error: Type.Optional(
          strictObject(
            { code: text(64), detail: text(4_096) },
            { description: 'Why the email is not sent again.' },
          ),
        ),
      }),
      { maxItems: MAX_BULK_ITEMS },
    ),
  },
  { $id: 'RetriedSystemEmails', title: 'RetriedSystemEmails' },
);

/** The emails of the service itself: which failed and why, and how they are sent again. */
export const systemEmailRoutes =
  ({
    systemEmails,
    lists,
  }: {
    systemEmails: SystemEmailService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/system-emails',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'systemEmails.list',
          summary: 'List the emails of the service itself, by default those that failed',
          tags: ['Admin'],
          querystring: strictObject({
            ...pageQuery,
            status: enumOf(NOTIFICATION_STATUSES, {
              default: 'failed',
              description: 'sending: an attempt is running, or its worker crashed.',
            }),
            org_id: Type.Optional(id('Organization (org_…).')),
          }),
          response: { 200: listOf(ref(SystemEmailRecord)), ...problems() },
        },
      },
      async (request) => {
        const { status, org_id: organizationId } = request.query;
        const page = await systemEmails.list(request.staff, { status, organizationId }, lists.read(request));
        return lists.present(request, page, presentSystemEmail);
      },
    );

    app.post(
      '/system-emails/retry',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'systemEmails.retry',
          summary: 'Send failed emails of the service again',
          description:
            'Each on its own: one that cannot be sent again does not affect the others. An email whose outcome was lost may arrive twice.',
          tags: ['Admin'],
          body: ref(RetrySystemEmails),
          response: { 200: ref(RetriedSystemEmails), ...postProblems() },
        },
      },
      async ({ staff, body }) => ({
        object: 'system_email_retry' as const,
        results: (await systemEmails.retry(staff, body.ids, body.note)).map(presentResult),
      }),
    );
    done();
  };

function presentSystemEmail(email: SystemEmail): Static<typeof SystemEmailRecord> {
  return {
    object: 'system_email',
    id: email.id,
    template: email.template,
    status: email.status,
    to: email.email,
    org_id: email.organizationId,
    user_id: email.userId,
    attempts: email.attempts,
    last_error: email.lastError,
    next_attempt_at: email.nextAttemptAt?.toISOString() ?? null,
    link_expires_at: email.linkExpiresAt?.toISOString() ?? null,
    created_at: email.createdAt.toISOString(),
    sent_at: email.sentAt?.toISOString() ?? null,
  };
}

function presentResult(result: RetryResult): Static<typeof RetriedSystemEmails>['results'][number] {
  const retried = { object: 'system_email_retry_result', id: result.id } as const;
  if (result.status === 'done') return { ...retried, status: result.status };
  const { code, detail, fix } = result.error;
  return { ...retried, status: result.status, error: { code, detail: `${detail} ${fix}` } };
}
