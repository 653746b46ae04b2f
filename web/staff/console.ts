import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { StaffAuditLogService, StaffLogFilter } from '../../domain/staff/staff-audit-log.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { describeClient } from '../shell/formats.ts';
import { NOTICES, type Notice } from '../shell/notices.ts';
import { type Page, type Pages, rejectionOf } from '../shell/pages.ts';

/** What the pages for staff answer with. */
export interface Console {
  /** Sends a page of the console. Its end shows the latest entries of the staff log about its subject. */
  send(request: FastifyRequest, reply: FastifyReply, page: ConsolePage): Promise<FastifyReply>;
  /** Goes back after a form was accepted, or shows its page again with the rejection. */
  finish(reply: FastifyReply, form: SubmittedForm): Promise<FastifyReply>;
}

export interface ConsolePage extends Page {
  /** What the page is about; undefined for pages without a log. */
  log?: StaffLogFilter;
}

export interface SubmittedForm {
  work: Promise<unknown>;
  /** Local path of the page of the form. */
  back: string;
  notice?: Notice;
  show(problem: AppError): Promise<FastifyReply>;
}

/** A checkbox of a form. */
export const Checked = Type.Optional(Type.Literal('on'));
export const ResourceParams = strictObject({ id: text(128) });
export const NoticeQuery = strictObject({ notice: Type.Optional(enumOf(Object.keys(NOTICES) as Notice[])) });

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
    async finish(reply, { work, back, notice = 'done', show }) {
      const problem = await rejectionOf(work);
      return problem ? show(problem) : pages.seeOther(reply, back, notice);
    },
  };
}
