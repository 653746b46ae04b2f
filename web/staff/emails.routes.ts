import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Note } from '../../api/admin/note.ts';
import { MAX_BULK_ITEMS } from '../../api/admin/organizations.schemas.ts';
import { type Lists, pageQuery } from '../../api/lists.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { RetryResult, SystemEmailService } from '../../domain/administration/system-email.service.ts';
import {
  NOTIFICATION_STATUSES,
  type NotificationStatus,
} from '../../domain/notifications/notification.entity.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { OptionalText } from '../shell/forms.ts';
import { type Console, NoticeQuery } from './console.ts';
import { filled, nextPage } from './filters.ts';

export interface EmailConsoleDependencies {
  console: Console;
  systemEmails: SystemEmailService;
  lists: Lists;
}

const LATEST = { limit: 25, order: 'desc' } as const;
/** Checkboxes of one name: one value is no array. */
const Selection = Type.Union([text(64), Type.Array(text(64), { maxItems: MAX_BULK_ITEMS })]);

/** The emails of the service itself: which failed and why, and the form that sends them again. */
export const emailConsole =
  ({ console, systemEmails, lists }: EmailConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { status = 'failed', organization_id: organizationId } = (problem ? {} : request.query) as {
        status?: NotificationStatus;
        organization_id?: string;
      };
      const pageRequest = problem ? LATEST : lists.read(request);
      const filter = { status, organizationId: organizationId || undefined };
      const page = await systemEmails.list(request.staff, filter, pageRequest);
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
          filter: { ...filled({ organization_id: organizationId }), status },
          statuses: NOTIFICATION_STATUSES,
          nextPage: problem
            ? undefined
            : nextPage(
                request,
                lists.present(request, page, () => null),
              ),
        },
      });
    };

    app.get(
      '/admin/emails',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.emails',
          querystring: strictObject({
            ...pageQuery,
            ...NoticeQuery.properties,
            status: Type.Optional(enumOf(NOTIFICATION_STATUSES)),
            organization_id: OptionalText(64),
          }),
        },
      },
      async (request, reply) => show(request, reply),
    );

    app.post(
      '/admin/emails/retry',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.retryEmails',
          body: strictObject({ id: Type.Optional(Selection), note: Note }),
        },
      },
      async (request, reply) => {
        const { id = [], note } = request.body;
        const ids = [id].flat();
        const retry = async () => {
          if (ids.length === 0) throw nothingSelected();
          requireAllDone(await systemEmails.retry(request.staff, ids, note));
        };
        return console.finish(reply, {
          work: retry(),
          back: '/admin/emails',
          show: (problem) => show(request, reply, problem),
        });
      },
    );
    done();
  };

const nothingSelected = (): AppError =>
  invalid('/body/id', 'No email is selected.', 'Select the emails to send again.');

/** Says which were left out, and why: the others are on their way. */
function requireAllDone(results: readonly RetryResult[]): void {
  const failed = results.flatMap((result) => (result.status === 'failed' ? [result] : []));
  if (failed.length === 0) return;
  const reasons = failed.map(({ id, error }) => `${id}: ${error.detail}`).join(' ');
  throw new AppError('conflict', {
    detail: `${failed.length} of ${results.length} emails are not sent again. ${reasons}`.slice(0, 4_000),
    fix:
      failed.length < results.length
        ? 'The others are on their way.'
        : 'Read for each what helps; none was sent again.',
  });
}
