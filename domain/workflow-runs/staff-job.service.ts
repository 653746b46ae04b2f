import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { SerializedRow } from '../../platform/database/serialized-row.ts';
import { parseTimestamp } from '../../platform/database/serialized-row.ts';
import { storableText } from '../../platform/database/storable.ts';
import { invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import type { AmbiguityResolution } from '../../workflows/outbound/send-message.contract.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import type { RunAction } from './plan-action.ts';
import { type StaffJob, StaffJobEntity, type StaffJobFilter, type StaffJobItem } from './staff-job.entity.ts';
import { buildStaffJobStart } from './staff-job-start.ts';
import { requireOpenForStage } from './workflow-run.service.ts';

export interface StaffJobRequest {
  action: RunAction;
  note: string;
  resolution: AmbiguityResolution | null;
  /** Exactly one of these. */
  filter: StaffJobFilter | null;
  items: StaffJobItem[] | null;
}

/** A job without its list, which may be long. */
export type StaffJobRow = Omit<
  StaffJob,
  'items' | 'reconciledAt' | 'ip' | 'requestId' | 'sessionId' | 'position'
>;

/** Actions of staff on many runs. */
export interface StaffJobService {
  /**
   * Records the job with its reason; the commit starts its run.
   *
   * @throws AppError `validation_error` if its filter selects every run of the service, or ended runs by stage.
   */
  create(staff: StaffScope, request: StaffJobRequest): Promise<StaffJobRow>;
  list(staff: StaffScope, page: PageRequest): Promise<Page<StaffJobRow>>;
  /** @throws AppError `not_found`. */
  get(staff: StaffScope, jobId: string): Promise<StaffJobRow>;
}

export function createStaffJobService({
  database,
  outbox,
}: {
  database: Database;
  outbox: Outbox;
}): StaffJobService {
  return {
    async create(staff, request) {
      if (request.filter) requireOpenForStage(request.filter, '/body/query/stage');
      assertSelective(request.filter);
      return database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        const { action, note, resolution, filter, items } = request;
        const job = em.create(StaffJobEntity, {
          id: newId('staffJob'),
          staffId: staff.staffId,
          sessionId: staff.person.sessionId,
          ip: staff.ip,
          requestId: staff.requestId,
          action,
          note: storableText(note),
          resolution,
          filter,
          items,
          status: 'running',
          detail: null,
          matched: 0,
          accepted: 0,
          refused: 0,
          problems: [],
          createdAt: new Date(),
          completedAt: null,
        });
        em.persist(job);
        await recordStaffAudit(em, staff, {
          action: 'staff_job.created',
          resourceType: 'staff_job',
          resourceId: job.id,
          reason: note,
          details: { action, ...(filter ? { filter } : { items: items?.length ?? 0 }) },
        });
        outbox.enqueue(transaction, staff.staffId, { start: buildStaffJobStart(job) });
        return job;
      });
    },

    list: (staff, page) =>
      database.staffTransaction(staff, async ({ em }) => {
        const [after] = page.after ?? [];
        const isAscending = page.order === 'asc';
        const beyond = isAscending ? sql`id > ${after ?? ''}` : sql`id < ${after ?? ''}`;
        const rows = await em.execute<SerializedRow<StaffJobRow>[]>(sql`
          select ${COLUMNS} from staff_jobs where ${after === undefined ? sql`true` : beyond}
          order by id ${isAscending ? sql`asc` : sql`desc`} limit ${page.limit + 1}`);
        return toPage(rows.map(parseRow), page.limit, ({ id }) => [id]);
      }),

    get: (staff, jobId) =>
      database.staffTransaction(staff, async ({ em }) => {
        const [row] = await em.execute<SerializedRow<StaffJobRow>[]>(
          sql`select ${COLUMNS} from staff_jobs where id = ${jobId}`,
        );
        if (!row) throw notFound('staff job', jobId);
        return parseRow(row);
      }),
  };
}

/** A form without filters must not cancel all work of the service. */
function assertSelective(filter: StaffJobFilter | null): void {
  if (!filter || filter.failing) return;
  const { type, stage, organizationId, about } = filter;
  if ([type, stage, organizationId, about].some((value) => value !== undefined)) return;
  throw invalid(
    '/body/query',
    'The filter would select every run of the service.',
    'Filter by type, stage, org_id, about or failing.',
  );
}

const COLUMNS = sql`id, staff_id as "staffId", action, note, resolution, filter, status, detail, matched, accepted,
  refused, problems, created_at as "createdAt", completed_at as "completedAt"`;

const parseRow = (row: SerializedRow<StaffJobRow>): StaffJobRow => ({
  ...row,
  createdAt: new Date(row.createdAt),
  completedAt: parseTimestamp(row.completedAt),
});
