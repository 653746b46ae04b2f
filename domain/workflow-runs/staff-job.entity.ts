import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, json, primaryId, timestamp } from '../../platform/database/columns.ts';
import type { WorkflowRunStatus } from '../../platform/temporal-runs/workflow-run.ts';
import type { AmbiguityResolution } from '../../workflows/outbound/send-message.contract.ts';
import type { RunAction } from './plan-action.ts';

/** The runs on which a job acts. */
export interface StaffJobFilter {
  status: WorkflowRunStatus;
  type?: string;
  stage?: string;
  organizationId?: string;
  about?: string;
  /** ISO 8601. */
  startedBefore?: string;
  failing: boolean;
}

/** One line of a list made from the relay's log. */
export interface StaffJobItem {
  /** Message id, or Message-ID. */
  message: string;
  /** Number of the recipient; default: all ambiguous recipients of the message. */
  recipient?: number;
  /** Address of the recipient, instead of its number. */
  email?: string;
  resolution: AmbiguityResolution;
}

/** Why a run or a line of the list was left out. */
export interface StaffJobProblem {
  target: string;
  error: string;
}

/** `stopped`: an operator ended it. */
export type StaffJobStatus = 'running' | 'completed' | 'stopped';

/** An action of staff on many runs, batch by batch. It belongs to the service and outlives organizations. */
export const StaffJobEntity = defineEntity({
  name: 'StaffJob',
  tableName: 'staff_jobs',
  indexes: [
    {
      name: 'staff_jobs_running_index',
      expression: `create index "staff_jobs_running_index" on "staff_jobs" ("created_at") where "status" = 'running'`,
    },
  ],
  properties: {
    id: primaryId(),
    /** User id of the staff member, and the request that created the job. */
    staffId: idColumn(),
    sessionId: idColumn(),
    ip: p.text(),
    requestId: p.text(),
    action: p.text().$type<RunAction>(),
    note: p.text(),
    /** For `resolve` with a filter. */
    resolution: p.text().$type<AmbiguityResolution>().strictNullable(),
    /** Null for a list. */
    filter: json(p.json().$type<StaffJobFilter>().strictNullable()),
    /** Null for a filter. */
    items: json(p.json().$type<StaffJobItem[]>().strictNullable()),
    status: p.text().$type<StaffJobStatus>().default('running'),
    /** Why the job stopped, or what it left out; otherwise null. */
    detail: p.text().strictNullable(),
    /** Where the next batch begins: a position in the index of Temporal, or in the list; null at the beginning. */
    position: p.text().strictNullable(),
    /** Runs or lines processed so far. The next fields count those accepted and refused. */
    matched: p.integer().default(0),
    accepted: p.integer().default(0),
    refused: p.integer().default(0),
    /** The first problems. */
    problems: json(p.json().$type<StaffJobProblem[]>()),
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    completedAt: timestamp().strictNullable(),
  },
});

export type StaffJob = InferEntity<typeof StaffJobEntity>;
