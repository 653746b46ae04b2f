import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import { findPage } from '../../platform/database/pages.ts';
import { storableText } from '../../platform/database/storable.ts';
import { invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { AmbiguityResolution } from '../../workflows/outbound/send-message.contract.ts';
import { RUN_STAFF_JOB, runStaffJobWorkflowId } from '../../workflows/staff-jobs/run-staff-job.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import type { RunAction } from './plan-action.ts';
import type { StaffJob, StaffJobFilter, StaffJobItem } from './staff-job.entity.ts';
import { requireOpenForStage } from './workflow-run.service.ts';

export interface StaffJobRequest {
  action: RunAction;
  note: string;
  resolution: AmbiguityResolution | null;
  /** Exactly one of `filter` and `items` is set. */
  filter: StaffJobFilter | null;
  items: StaffJobItem[] | null;
}

/** A job without its list, which may be long. */
export type StaffJobRow = Omit<
  StaffJob,
  'items' | 'reconciledAt' | 'ip' | 'requestId' | 'sessionId' | 'position'
>;

export type StaffJobService = ReturnType<typeof createStaffJobService>;

/** Actions of staff on many runs. */
export function createStaffJobService({ database, outbox }: { database: Database; outbox: Outbox }) {
  return {
    /**
     * Records the job with its reason, and starts its run after the commit.
     *
     * @throws AppError `validation_error` if its filter selects every run of the service, or ended runs by stage.
     */
    async create(staff: StaffScope, request: StaffJobRequest): Promise<StaffJobRow> {
      if (request.filter) requireOpenForStage(request.filter, '/body/query/stage');
      assertSelective(request.filter);
      return database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        const { action, note, resolution, filter, items } = request;
        const job = await db
          .insertInto('staff_jobs')
          .values({
            id: newId('staffJob'),
            staff_id: staff.staffId,
            session_id: staff.person.sessionId,
            ip: staff.ip,
            request_id: staff.requestId,
            action,
            note: storableText(note),
            resolution,
            filter: json(filter),
            items: json(items),
            problems: json([]),
          })
          .returning(COLUMNS)
          .executeTakeFirstOrThrow(() => new Error('The staff job was not created'));
        await recordStaffAudit(db, staff, {
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

    list: (staff: StaffScope, page: PageRequest): Promise<Page<StaffJobRow>> =>
      database.staffTransaction(staff, ({ db }) =>
        findPage(db.selectFrom('staff_jobs').select(COLUMNS), 'staff_jobs.id', page),
      ),

    /** @throws AppError `not_found`. */
    get: (staff: StaffScope, jobId: string): Promise<StaffJobRow> =>
      database.staffTransaction(staff, async ({ db }) => {
        const job = await db
          .selectFrom('staff_jobs')
          .select(COLUMNS)
          .where('id', '=', jobId)
          .executeTakeFirst();
        if (!job) throw notFound('staff job', jobId);
        return job;
      }),
  };
}

/** An empty form must not cancel all work of the service. */
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

const COLUMNS = [
  'id',
  'staff_id as staffId',
  'action',
  'note',
  'resolution',
  'filter',
  'status',
  'detail',
  'matched',
  'accepted',
  'refused',
  'problems',
  'created_at as createdAt',
  'completed_at as completedAt',
] as const;

export function buildStaffJobStart({
  id,
  staffId,
  action,
}: Pick<StaffJob, 'id' | 'staffId' | 'action'>): StartCommand {
  return {
    workflowType: RUN_STAFF_JOB,
    workflowId: runStaffJobWorkflowId(id),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.urgent, fairnessKey: staffId },
    input: { jobId: id },
    searchAttributes: { ResourceId: id, RelatedId: staffId, Stage: 'acting' },
    summary: `Staff job ${id}: ${action} many runs`,
  };
}
