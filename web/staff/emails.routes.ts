import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Note } from '../../api/admin/note.ts';
import { MAX_BULK_ITEMS } from '../../api/admin/organizations.schemas.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { RetryResult, SystemEmailService } from '../../domain/administration/system-email.service.ts';
import {
  NOTIFICATION_STATUSES,
  type NotificationStatus,
} from '../../domain/notifications/notification.entity.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { OptionalText } from '../shell/forms.ts';
import { withQuery } from '../shell/links.ts';
import { staffWords } from '../shell/words.ts';
import { type Console, staffListQuery } from './console.ts';

export interface EmailConsoleDependencies {
  console: Console;
  systemEmails: SystemEmailService;
}

/** Checkboxes of one name: one value is no array. */
const Selection = Type.Union([text(64), Type.Array(text(64), { maxItems: MAX_BULK_ITEMS })]);
const OfOrganization = { organization_id: OptionalText(64) };
type Filters = { status?: NotificationStatus; organization_id?: string };

/** The emails of the service itself: which failed and why, and the form that sends them again. */
export const emailConsole =
  ({ console, systemEmails }: EmailConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { status = 'failed', organization_id: organizationId } = request.query as Filters;
      const filter = { status, organizationId: organizationId || undefined };
      const page = await systemEmails.list(request.staff, filter, console.readPage(request));
      return console.send(request, reply, {
        template: 'staff/emails',
        title: 'Emails',
        problem,
        log: { resourceType: 'system_email' },
        data: {
          emails: page.items.map((email) => ({
            ...email,
            isExpired: email.linkExpiresAt !== null && email.linkExpiresAt.getTime() <= Date.now(),
          })),
          selected: [(request.body as { id?: unknown } | undefined)?.id].flat(),
          filter: { organization_id: organizationId, status },
          query: withQuery('', { organization_id: organizationId }),
          statuses: NOTIFICATION_STATUSES,
          nextPage: console.nextPage(request, page),
        },
      });
    };

    app.get(
      '/admin/emails',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.emails',
          querystring: staffListQuery({
            ...OfOrganization,
            status: Type.Optional(enumOf(NOTIFICATION_STATUSES)),
          }),
        },
      },
      async (request, reply) => show(request, reply),
    );

    console.form(app, '/admin/emails/retry', {
      config: { staff: 'support' },
      schema: {
        operationId: 'console.retryEmails',
        querystring: staffListQuery(OfOrganization),
        body: strictObject({ id: Type.Optional(Selection), note: Note }),
      },
      work: async ({ staff, body: { id = [], note } }) => {
        const ids = [id].flat();
        if (ids.length === 0) throw nothingSelected();
        requireAllDone(await systemEmails.retry(staff, ids, note));
      },
      show,
    });
    done();
  };

const nothingSelected = (): AppError =>
  invalid('/body/id', 'No email is selected.', 'Select the emails to send again.');

/** Says which were left out, and why: the others are on their way. */
function requireAllDone(results: readonly RetryResult[]): void {
  const failed = results.flatMap((result) => (result.status === 'failed' ? [result] : []));
  if (failed.length === 0) return;
  const reasons = failed.map(({ id, error }) => `${id}: ${staffWords(error.detail)}`).join(' ');
  throw new AppError('conflict', {
    detail: `${failed.length} of ${results.length} emails are not sent again. ${reasons}`.slice(0, 4_000),
    fix:
      failed.length < results.length
        ? 'The others are on their way.'
        : 'Read for each what helps; none was sent again.',
  });
}
