import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type TObject, type TProperties, Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { parseDay } from '../../api/time.ts';
import type { StaffAuditLogService, StaffLogFilter } from '../../domain/staff/staff-audit-log.service.ts';
import type { Page as ListPage, PageRequest } from '../../platform/pagination.ts';
import { describeClient } from '../shell/formats.ts';
import { listQuery } from '../shell/forms.ts';
import { NOTICES, type Notice } from '../shell/notices.ts';
import type { Form, Page, Pages } from '../shell/pages.ts';

/** What the pages for staff answer with. */
export interface Console {
  /** Sends a page of the console. Its end shows the latest entries of the staff log about its subject. */
  send(request: FastifyRequest, reply: FastifyReply, page: ConsolePage): Promise<FastifyReply>;
  /** Registers the POST of a form. Its page is shown again with what was wrong, or says that it is done. */
  form<Body extends TObject, Params extends TObject, Result>(
    app: FastifyInstance,
    path: string,
    form: ConsoleForm<Body, Params, Result>,
  ): void;
  /** The page of a list that the query asks for; the first one if a form has led here. @throws AppError `invalid_cursor`. */
  readPage(request: FastifyRequest): PageRequest;
  /** The path of the next page of a list; undefined on the last one. */
  nextPage(request: FastifyRequest, page: ListPage<unknown>): string | undefined;
}

export interface ConsolePage extends Page {
  /** What the page is about; undefined for pages without a log. */
  log?: StaffLogFilter;
}

/** Without `done`, its page says that the change is in the log. */
type ConsoleForm<Body extends TObject, Params extends TObject, Result> = Omit<
  Form<Body, Params, Result>,
  'done'
> &
  Partial<Pick<Form<Body, Params, Result>, 'done'>>;

/** A checkbox of a form. */
export const Checked = Type.Optional(Type.Literal('on'));
export const ResourceParams = strictObject({ id: text(128) });
export const NoticeQuery = strictObject({ notice: Type.Optional(enumOf(Object.keys(NOTICES) as Notice[])) });
/** A time in UTC, as `datetime-local` inputs send it; empty if it was left empty. */
export const LocalTime = text(16);
/** @throws AppError `validation_error` at the field. */
export const readLocalTime = (field: string, entered: string): Date =>
  parseDay(`/body/${field}`, `${entered}:00Z`);
/** The query of a list with its filters. */
export const staffListQuery = <Filters extends TProperties>(filters: Filters) =>
  listQuery({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })), ...filters });

const SECTIONS = [
  ['/admin', 'Overview'],
  ['/admin/organizations', 'Organizations'],
  ['/admin/people', 'People'],
  ['/admin/work', 'Work'],
  ['/admin/requests', 'Upgrade requests'],
  ['/admin/toggles', 'Toggles'],
  ['/admin/announcements', 'Announcements'],
  ['/admin/emails', 'Emails'],
  ['/admin/health', 'Health'],
  ['/admin/staff', 'Staff'],
  ['/admin/log', 'Log'],
] as const;

const LATEST = { limit: 10, order: 'desc' } as const;
const PAGE = { limit: 25 };

export function createConsole({
  pages,
  staffAuditLog,
}: {
  pages: Pages;
  staffAuditLog: StaffAuditLogService;
}): Console {
  return {
    async send(request, reply, { data, log, ...page }) {
      const entries = log ? (await staffAuditLog.list(request.staff, log, LATEST)).items : undefined;
      const isAdmin = request.staff.role === 'admin';
      return pages.send(request, reply, {
        ...page,
        data: {
          ...data,
          staffSections: SECTIONS,
          isAdmin,
          entries,
          client: describeClient,
        },
      });
    },
    form: (app, path, form) =>
      pages.form(app, path, {
        done: (request, reply) => pages.seeOther(reply, pages.addressOf(request), 'done'),
        ...form,
      }),
    readPage: (request) => pages.readPage(request, PAGE),
    nextPage: (request, page) => pages.nextPage(request, page),
  };
}
