import { type Static, Type } from 'typebox';
import { RUN_ACTIONS } from '../../domain/workflow-runs/plan-action.ts';
import { MAX_RECIPIENTS, type SendEvidence } from '../../domain/workflow-runs/send-evidence.ts';
import type { StaffJobFilter } from '../../domain/workflow-runs/staff-job.entity.ts';
import type { StaffJobRow } from '../../domain/workflow-runs/staff-job.service.ts';
import type { ListedRun, RunDetails } from '../../domain/workflow-runs/workflow-run.service.ts';
import { RUN_STATUSES } from '../../platform/temporal-runs/workflow-run.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  orNull,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import { Note } from './note.ts';

const MAX_LIST_ITEMS = 1_000;
const RESOLUTION = enumOf(['sent', 'resend'], {
  description: 'sent: the relay has the message. resend: it does not, or a duplicate is acceptable.',
});
const RECIPIENT = Type.Integer({
  minimum: 0,
  maximum: 1_000,
  description: 'Number of the recipient, from 0; without it, all ambiguous recipients of the message.',
});

/** A workflow id: kind and ids, with slashes between. */
export const WorkflowId = text(320, {
  minLength: 1,
  pattern: '^[A-Za-z0-9_.:/-]+$',
  description: 'Workflow id, for example send/msg_…',
});

export const runFilters = {
  status: enumOf(RUN_STATUSES, { default: 'running', description: 'Of the run.' }),
  type: Type.Optional(
    text(64, {
      pattern: '^[A-Za-z]+$',
      minLength: 1,
      description: 'Workflow type, for example sendMessage.',
    }),
  ),
  stage: Type.Optional(
    text(64, { pattern: '^[a-z_]+$', description: 'Of open runs, for example needs_attention.' }),
  ),
  org_id: Type.Optional(id('Organization of the runs.')),
  about: Type.Optional(
    text(320, {
      pattern: '^[A-Za-z0-9_.:-]+$',
      minLength: 1,
      description:
        'An id that the runs concern: of a message, draft, inbox, endpoint, delivery, event, domain and so on, or of the request (req_…) that caused them.',
    }),
  ),
  older_than_seconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 315_360_000, description: 'Age of the run.' }),
  ),
  failing: Type.Boolean({
    default: false,
    description:
      'Only runs with a failed activity that is retried or a paused one, and those that wait for a person.',
  }),
};

const SendEvidenceRecord = strictObject({
  message_id: text(128),
  rfc_message_id: nullableText(1_000, {
    description: 'The Message-ID to search for, without angle brackets.',
  }),
  recipients: Type.Array(
    strictObject({
      recipient: Type.Integer({ minimum: 0, description: 'Its number, for resolve.' }),
      domain: text(255),
      status: text(32),
      ambiguous: Type.Boolean({ description: 'Needs a decision.' }),
      attempt: Type.Integer({ minimum: 1, description: 'Number of the latest attempt.' }),
      started_at: timestamp(),
      finished_at: nullableTimestamp('Null: the worker ended during the attempt.'),
      response: nullableText(1_000, { description: 'The last answer of the relay, or why there is none.' }),
      provider_message_id: nullableText(1_000),
    }),
    { maxItems: MAX_RECIPIENTS },
  ),
});

const PendingActivity = strictObject({
  type: text(100),
  state: enumOf(['waiting', 'running', 'canceling', 'paused']),
  attempt: Type.Integer({ minimum: 0 }),
  last_failure: nullableText(2_000),
  last_started_at: nullableTimestamp(),
  next_attempt_at: nullableTimestamp(),
});

const runFields = {
  workflow_id: text(320),
  run_id: text(64),
  type: text(100),
  status: enumOf(RUN_STATUSES),
  stage: nullableText(64, { description: 'Of an open run; null once it has ended.' }),
  result: nullableText(2_000, {
    description:
      'How the run ended; null while it is open, and if it failed. `held`: it failed with HeldBySuspension, and starts again when what holds its work ends.',
  }),
  failure: nullableText(2_000, {
    description: 'Type and message of why the run failed, was terminated or timed out; null otherwise.',
  }),
  org_id: nullableText(128),
  inbox_id: nullableText(128),
  resource_id: nullableText(320),
  related_id: nullableText(320),
  request_id: nullableText(128),
  summary: nullableText(2_000),
  started_at: timestamp(),
  closed_at: nullableTimestamp(),
  attempt: Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    minimum: 0,
    description: 'Of the activity that has failed, or of the first one that is open; null if none is.',
  }),
  last_failure: nullableText(2_000, { description: 'Of that activity; null if it has not failed.' }),
  next_attempt_at: nullableTimestamp(),
  actions: Type.Array(enumOf(RUN_ACTIONS), { maxItems: 4, description: 'What can be done with the run.' }),
  temporal_ui_url: nullableText(2_000),
};

export const WorkflowRunRecord = resource('workflow_run', runFields, {
  $id: 'WorkflowRun',
  title: 'WorkflowRun',
});

export const WorkflowRunDetails = resource(
  'workflow_run',
  {
    ...runFields,
    current_details: nullableText(20_000),
    history_length: Type.Integer({ minimum: 0 }),
    pending_activities: Type.Array(PendingActivity, { maxItems: 1_000 }),
    history: Type.Array(
      strictObject({
        id: Type.Integer({ minimum: 0 }),
        at: timestamp(),
        type: text(100),
        name: nullableText(320),
        detail: nullableText(2_000),
      }),
      { maxItems: 100, description: 'The newest events, newest first.' },
    ),
    evidence: Type.Union([SendEvidenceRecord, Type.Null()], {
      description:
        'Of a send whose outcome is unknown, to compare with the log of the relay before it is resolved.',
    }),
  },
  { $id: 'WorkflowRunDetails', title: 'WorkflowRunDetails' },
);

export const ResolveRunBody = strictObject(
  { note: Note, resolution: RESOLUTION, recipient: Type.Optional(RECIPIENT) },
  { title: 'ResolveRun' },
);

export const AcceptedRunAction = resource(
  'run_action',
  {
    workflow_id: text(320),
    type: text(100),
    action: enumOf(RUN_ACTIONS),
    effect: enumOf(['signaled', 'activities_retried', 'started', 'cancellation_requested', 'terminated']),
  },
  { $id: 'AcceptedRunAction', title: 'AcceptedRunAction' },
);

export const StaffJobBody = strictObject(
  {
    action: enumOf(RUN_ACTIONS),
    note: Note,
    query: Type.Optional(orNull(strictObject(runFilters))),
    resolution: Type.Optional(RESOLUTION),
    items: Type.Optional(
      Type.Array(
        strictObject({
          message: text(1_000, {
            minLength: 1,
            description:
              'Message id (msg_…), or Message-ID as the relay logs it, with or without angle brackets.',
          }),
          recipient: Type.Optional(RECIPIENT),
          email: Type.Optional(
            text(320, { minLength: 3, description: 'Address of the recipient, instead of its number.' }),
          ),
          resolution: RESOLUTION,
        }),
        {
          minItems: 1,
          maxItems: MAX_LIST_ITEMS,
          description: 'A list made from the relay’s log, for resolve.',
        },
      ),
    ),
  },
  { title: 'CreateStaffJob' },
);

export const StaffJobRecord = resource(
  'staff_job',
  {
    id: id('Id of the job (sjb_…).'),
    action: enumOf(RUN_ACTIONS),
    note: text(2_000),
    query: Type.Union([Type.Record(text(64), Type.Unknown()), Type.Null()], {
      description: 'Null for a list.',
    }),
    status: enumOf(['running', 'completed', 'stopped']),
    detail: nullableText(2_000),
    matched: Type.Integer({ minimum: 0, description: 'Runs, or lines of the list, seen so far.' }),
    accepted: Type.Integer({ minimum: 0 }),
    refused: Type.Integer({ minimum: 0 }),
    problems: Type.Array(strictObject({ target: text(1_000), error: text(2_000) }), {
      maxItems: 100,
      description: 'The first ones that were refused, and why.',
    }),
    staff_id: text(128),
    created_at: timestamp(),
    completed_at: nullableTimestamp(),
  },
  { $id: 'StaffJob', title: 'StaffJob' },
);

const toText = (time: Date | null): string | null => time?.toISOString() ?? null;

export function presentRun(
  run: ListedRun,
  urlOf: (run: ListedRun) => string | null,
): Static<typeof WorkflowRunRecord> {
  const { OrgId, InboxId, ResourceId, RelatedId, RequestId } = run.searchAttributes;
  const activity =
    run.pendingActivities.find(({ lastFailure }) => lastFailure !== null) ?? run.pendingActivities[0];
  return {
    object: 'workflow_run',
    workflow_id: run.workflowId,
    run_id: run.runId,
    type: run.type,
    status: run.status,
    stage: run.stage,
    result: run.result,
    failure: run.failure,
    org_id: OrgId ?? null,
    inbox_id: InboxId ?? null,
    resource_id: ResourceId ?? null,
    related_id: RelatedId ?? null,
    request_id: RequestId ?? null,
    summary: run.summary,
    started_at: run.startedAt.toISOString(),
    closed_at: toText(run.closedAt),
    attempt: activity?.attempt ?? null,
    last_failure: activity?.lastFailure ?? null,
    next_attempt_at: toText(activity?.nextAttemptAt ?? null),
    actions: run.actions,
    temporal_ui_url: urlOf(run),
  };
}

export function presentRunDetails(
  run: RunDetails,
  urlOf: (run: ListedRun) => string | null,
): Static<typeof WorkflowRunDetails> {
  return {
    ...presentRun(run, urlOf),
    current_details: run.currentDetails,
    history_length: run.historyLength,
    pending_activities: run.pendingActivities.map((activity) => ({
      type: activity.type,
      state: activity.state,
      attempt: activity.attempt,
      last_failure: activity.lastFailure,
      last_started_at: toText(activity.lastStartedAt),
      next_attempt_at: toText(activity.nextAttemptAt),
    })),
    history: run.events.map((event) => ({ ...event, at: event.at.toISOString() })),
    evidence: run.evidence && presentEvidence(run.evidence),
  };
}

const presentEvidence = (evidence: SendEvidence): Static<typeof SendEvidenceRecord> => ({
  message_id: evidence.messageId,
  rfc_message_id: evidence.rfcMessageId?.slice(0, 1_000) ?? null,
  recipients: evidence.recipients.map((recipient) => ({
    recipient: recipient.number,
    domain: recipient.domain,
    status: recipient.status,
    ambiguous: recipient.isAmbiguous,
    attempt: recipient.attempt,
    started_at: recipient.startedAt.toISOString(),
    finished_at: toText(recipient.finishedAt),
    response: recipient.response?.slice(0, 1_000) ?? null,
    provider_message_id: recipient.providerMessageId?.slice(0, 1_000) ?? null,
  })),
});

export function presentStaffJob(job: StaffJobRow): Static<typeof StaffJobRecord> {
  return {
    object: 'staff_job',
    id: job.id,
    action: job.action,
    note: job.note,
    query: job.filter && presentFilter(job.filter),
    status: job.status,
    detail: job.detail,
    matched: job.matched,
    accepted: job.accepted,
    refused: job.refused,
    problems: job.problems,
    staff_id: job.staffId,
    created_at: job.createdAt.toISOString(),
    completed_at: toText(job.completedAt),
  };
}

function presentFilter({
  organizationId,
  startedBefore,
  ...filter
}: StaffJobFilter): Record<string, unknown> {
  return {
    ...filter,
    ...(organizationId === undefined ? {} : { org_id: organizationId }),
    ...(startedBefore === undefined ? {} : { started_before: startedBefore }),
  };
}
