import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ApplicationFailure } from '@temporalio/common';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { settledAs } from '../../domain/outbound/message-status.ts';
import { MAIL_ANNOUNCEMENT } from '../../workflows/announcements/mail-announcement.contract.ts';
import {
  ENFORCE_PAYMENT_GRACE,
  EXTEND_GRACE,
  PAYMENT_RECOVERED,
} from '../../workflows/billing/enforce-payment-grace.contract.ts';
import { METER_USAGE } from '../../workflows/billing/meter-usage.contract.ts';
import { RECONCILE_BILLING, SYNC_SUBSCRIPTION } from '../../workflows/billing/sync-subscription.contract.ts';
import { CANCEL_PURGE, PURGE_ACCOUNT, PURGE_ORGANIZATION } from '../../workflows/deletions/purge.contract.ts';
import { RECHECK_DOMAINS } from '../../workflows/domains/recheck-domains.contract.ts';
import { CHECK_NOW, VERIFY_DOMAIN } from '../../workflows/domains/verify-domain.contract.ts';
import { AWAIT_APPROVAL, DRAFT_APPROVED } from '../../workflows/drafts/await-approval.contract.ts';
import { SEND_SCHEDULED_DRAFT } from '../../workflows/drafts/send-scheduled-draft.contract.ts';
import { CANCEL_EXPORT, EXPORT_ORGANIZATION } from '../../workflows/exports/export-organization.contract.ts';
import { PARSE_AGAIN } from '../../workflows/inbound/parse-again.contract.ts';
import { DISCARD_RECEIPT, RECEIVE_MESSAGE } from '../../workflows/inbound/receive-message.contract.ts';
import { PURGE_INBOX } from '../../workflows/inboxes/purge-inbox.contract.ts';
import { RECONCILE } from '../../workflows/maintenance/reconcile.contract.ts';
import { MOVE_THREAD_MESSAGES } from '../../workflows/messages/move-thread-messages.contract.ts';
import { SEND_NOTIFICATION } from '../../workflows/notifications/send-notification.contract.ts';
import {
  OUTCOME_RECORDED,
  RESOLVE_AMBIGUOUS,
  SEND_MESSAGE,
} from '../../workflows/outbound/send-message.contract.ts';
import {
  DELIVERY_OUTCOME_RECORDED,
  TRACK_DELIVERY,
} from '../../workflows/outbound/track-delivery.contract.ts';
import { APPLY_RETENTION, POSTPONE_RETENTION } from '../../workflows/retention/apply-retention.contract.ts';
import { START_RETENTION } from '../../workflows/retention/start-retention.contract.ts';
import { RUN_STAFF_JOB } from '../../workflows/staff-jobs/run-staff-job.contract.ts';
import { FIND_ORPHANED_OBJECTS } from '../../workflows/stored-objects/find-orphaned-objects.contract.ts';
import { SETTLE_HELD_WORK } from '../../workflows/suspensions/settle-held-work.contract.ts';
import { RELEASE_HELD } from '../../workflows/toggles/release-held.contract.ts';
import { CHECK_USAGE } from '../../workflows/usage-alerts/check-usage.contract.ts';
import { DELIVER_WEBHOOK, RETRY_DELIVERY_NOW } from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { PROBE_ENDPOINT, PROBE_NOW } from '../../workflows/webhooks/probe-endpoint.contract.ts';
import { RUN_BULK_JOB } from '../../workflows/webhooks/run-bulk-job.contract.ts';
import { startWorkflowEnvironment, type WorkflowTestEnvironment } from './workflow-environment.ts';

/**
 * `npm run histories:record`: records one history a path of every workflow into `test/workflows/histories`, where the
 * replay test reads them. Run it for a new path. Record an existing path again only on purpose, since its file stands for
 * the runs that are open while the code changes.
 */
interface Path {
  name: string;
  workflowType: string;
  input: object;
  activities: Record<string, () => Promise<unknown>>;
  /** Signals sent once the first activity has run, or at once where there is none. */
  signals?: { name: string; args: unknown[] }[];
  /** Cancels the run instead. */
  cancels?: boolean;
}

const once = (first: () => unknown, then: unknown) => {
  let calls = 0;
  return async () => {
    calls += 1;
    return calls === 1 ? first() : then;
  };
};
const SEND = { messageId: 'msg_1', gatesInTransmission: true };
const DELIVERY = { deliveryId: 'whd_1', generation: 1, endpointId: 'whe_1', attemptsLocally: true };
const SETTLED = settledAs('sent');
const DEFERRED = { status: 'deferred', hasUnsent: true, ambiguous: [] };
const AMBIGUOUS = { status: 'needs_attention', hasUnsent: false, ambiguous: [0], messageIdLeft: 'msg_1' };
const failing = () => {
  throw ApplicationFailure.create({
    type: 'DeliveryFailed',
    message: 'HTTP 500',
    nextRetryDelay: '10 hours',
  });
};
const missing = () => {
  throw ApplicationFailure.create({
    type: 'RecordsMissing',
    message: 'Required records missing: spf.',
    nextRetryDelay: '10 hours',
  });
};
const slice = (end: string, messages: number) => ({
  messages,
  threads: 1,
  end,
  detail: end === 'stopped' ? 'Postponed until then.' : '',
  cursor: { environmentId: 'env_1', after: 'msg_1' },
});
const graceStep = (stage: string, waitUntil: string) => ({ stage, waitUntil, detail: stage });
const longAgo = '2020-01-01T00:00:00.000Z';
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

const PATHS: Path[] = [
  // First, because later paths skip decades.
  {
    name: 'purge-account.recovered',
    workflowType: PURGE_ACCOUNT,
    input: { deletionId: 'del_1', dueAt: inDays(30) },
    activities: { remindOfPurge: async () => 1, stopPurge: async () => 'recovered' },
    signals: [{ name: CANCEL_PURGE, args: [] }],
  },
  {
    name: 'purge-account.purged',
    workflowType: PURGE_ACCOUNT,
    input: { deletionId: 'del_1', dueAt: inDays(60) },
    activities: {
      remindOfPurge: async () => 1,
      beginPurge: once(() => 'not_due', 'purging'),
      purgeAccountData: async () => 'purged: deleted the account',
    },
  },
  {
    name: 'purge-organization.purged',
    workflowType: PURGE_ORGANIZATION,
    input: { deletionId: 'del_1', dueAt: inDays(120), expiresCheckout: true },
    activities: {
      expireCheckout: async () => 'expired',
      remindOfPurge: async () => 1,
      beginPurge: async () => 'purging',
      purgeOrganizationData: once(() => ({ isDone: false, rows: 500 }), { isDone: true, rows: 20 }),
    },
  },
  {
    name: 'purge-organization.canceled',
    workflowType: PURGE_ORGANIZATION,
    input: { deletionId: 'del_1', dueAt: longAgo },
    activities: {
      beginPurge: async () => 'purging',
      purgeOrganizationData: async () => failing(),
      stopPurge: async () => 'stopped',
    },
    cancels: true,
  },
  {
    name: 'mail-announcement.mailed',
    workflowType: MAIL_ANNOUNCEMENT,
    input: { announcementId: 'ntc_1', startsAt: longAgo },
    activities: { mailOwners: async () => 'mailed 3 owner(s)' },
  },
  {
    name: 'release-held.released',
    workflowType: RELEASE_HELD,
    input: { toggle: 'sending' },
    activities: { releaseHeld: async () => 250 },
  },
  {
    name: 'send-message.sent',
    workflowType: SEND_MESSAGE,
    input: SEND,
    activities: { transmitMessage: async () => SETTLED },
  },
  {
    name: 'send-message.recorded-afterwards',
    workflowType: SEND_MESSAGE,
    input: SEND,
    activities: { transmitMessage: async () => undefined, recordSend: async () => SETTLED },
  },
  {
    name: 'send-message.deferred-then-sent',
    workflowType: SEND_MESSAGE,
    input: SEND,
    activities: { transmitMessage: once(() => DEFERRED, SETTLED) },
  },
  {
    name: 'send-message.ambiguous-then-reported',
    workflowType: SEND_MESSAGE,
    input: SEND,
    activities: {
      transmitMessage: async () => AMBIGUOUS,
      recordSend: async () => SETTLED,
    },
    signals: [{ name: OUTCOME_RECORDED, args: [] }],
  },
  {
    name: 'send-message.resolved-while-deferred',
    workflowType: SEND_MESSAGE,
    input: SEND,
    activities: {
      transmitMessage: once(() => ({ ...AMBIGUOUS, hasUnsent: true }), AMBIGUOUS),
      resolveAmbiguity: async () => SETTLED,
    },
    signals: [{ name: RESOLVE_AMBIGUOUS, args: [{ resolution: 'sent', recipient: 0 }] }],
  },
  {
    name: 'send-message.canceled',
    workflowType: SEND_MESSAGE,
    input: SEND,
    activities: {
      transmitMessage: async () => DEFERRED,
      recordSend: async () => DEFERRED,
      cancelMessage: async () => settledAs('canceled'),
    },
    cancels: true,
  },
  {
    name: 'await-approval.approved',
    workflowType: AWAIT_APPROVAL,
    input: { draftId: 'drf_1', generation: 1, expiresAt: '2099-01-01T00:00:00.000Z' },
    activities: { announceApproval: async () => undefined, settleApproval: async () => 'decided' },
    signals: [{ name: DRAFT_APPROVED, args: [] }],
  },
  {
    name: 'await-approval.expired',
    workflowType: AWAIT_APPROVAL,
    input: { draftId: 'drf_1', generation: 1, expiresAt: longAgo },
    activities: { announceApproval: async () => undefined, settleApproval: async () => 'expired' },
  },
  {
    name: 'await-approval.canceled',
    workflowType: AWAIT_APPROVAL,
    input: { draftId: 'drf_1', generation: 1, expiresAt: '2099-01-01T00:00:00.000Z' },
    activities: { announceApproval: async () => undefined, cancelApproval: async () => undefined },
    cancels: true,
  },
  {
    name: 'track-delivery.reported',
    workflowType: TRACK_DELIVERY,
    input: { messageId: 'msg_1', openRecipients: 1 },
    activities: {},
    signals: [{ name: DELIVERY_OUTCOME_RECORDED, args: [{ openRecipients: 0 }] }],
  },
  {
    name: 'track-delivery.expired',
    workflowType: TRACK_DELIVERY,
    input: { messageId: 'msg_1', openRecipients: 1 },
    activities: {},
  },
  {
    name: 'receive-message.stored',
    workflowType: RECEIVE_MESSAGE,
    input: { receiptId: 'rcp_1' },
    activities: { ingestReceipt: async () => 'stored as msg_1' },
  },
  {
    name: 'receive-message.at-once',
    workflowType: RECEIVE_MESSAGE,
    input: { receiptId: 'rcp_1', sizeBytes: 1_000 },
    activities: { ingestReceipt: async () => 'stored as msg_1' },
  },
  {
    name: 'receive-message.not-at-once',
    workflowType: RECEIVE_MESSAGE,
    input: { receiptId: 'rcp_1', sizeBytes: 1_000 },
    activities: {
      ingestReceipt: once(() => {
        throw new Error('storage is down');
      }, 'stored as msg_1'),
    },
  },
  {
    name: 'receive-message.discarded',
    workflowType: RECEIVE_MESSAGE,
    input: { receiptId: 'rcp_1' },
    activities: {
      async ingestReceipt() {
        throw ApplicationFailure.nonRetryable('The object is missing.', 'StorageError');
      },
      discardReceipt: async () => 'discarded: lost',
    },
    signals: [{ name: DISCARD_RECEIPT, args: ['lost'] }],
  },
  {
    name: 'parse-again.parsed',
    workflowType: PARSE_AGAIN,
    input: { messageId: 'msg_1' },
    activities: { parseMessageAgain: async () => 'parsed' },
  },
  {
    name: 'send-scheduled-draft.sent',
    workflowType: SEND_SCHEDULED_DRAFT,
    input: { draftId: 'drf_1', scheduleVersion: 1, sendAt: longAgo, version: 1 },
    activities: { sendDueDraft: once(() => ({ waitUntil: '2100-01-01T00:00:00.000Z' }), 'sent') },
  },
  {
    name: 'deliver-webhook.at-once',
    workflowType: DELIVER_WEBHOOK,
    input: DELIVERY,
    activities: { attemptDelivery: async () => 'delivered' },
  },
  {
    name: 'deliver-webhook.not-at-once',
    workflowType: DELIVER_WEBHOOK,
    input: DELIVERY,
    activities: { attemptDelivery: once(failing, 'delivered') },
  },
  {
    name: 'deliver-webhook.delivered',
    workflowType: DELIVER_WEBHOOK,
    input: { deliveryId: 'whd_1' },
    activities: { attemptDelivery: once(failing, 'delivered') },
  },
  {
    name: 'deliver-webhook.retried-now',
    workflowType: DELIVER_WEBHOOK,
    input: { deliveryId: 'whd_1' },
    activities: { attemptDelivery: once(failing, 'delivered') },
    signals: [{ name: RETRY_DELIVERY_NOW, args: [] }],
  },
  {
    name: 'probe-endpoint.released',
    workflowType: PROBE_ENDPOINT,
    input: { endpointId: 'whe_1', generation: 1 },
    activities: { attemptProbe: once(failing, 'recovered'), releaseBacklog: once(failing, 'released') },
  },
  {
    name: 'probe-endpoint.probed-now',
    workflowType: PROBE_ENDPOINT,
    input: { endpointId: 'whe_1', generation: 1 },
    activities: { attemptProbe: once(failing, 'disabled') },
    signals: [{ name: PROBE_NOW, args: [] }],
  },
  {
    name: 'send-notification.deferred-then-sent',
    workflowType: SEND_NOTIFICATION,
    input: { notificationId: 'ntf_1' },
    activities: { attemptNotification: once(failing, 'sent') },
  },
  {
    name: 'send-notification.canceled',
    workflowType: SEND_NOTIFICATION,
    input: { notificationId: 'ntf_1' },
    activities: { attemptNotification: async () => failing(), stopNotification: async () => 'failed' },
    cancels: true,
  },
  {
    name: 'run-bulk-job.completed',
    workflowType: RUN_BULK_JOB,
    input: { jobId: 'whj_1' },
    activities: { processBulkJob: async () => 'completed: 2 deliveries' },
  },
  {
    name: 'run-bulk-job.canceled',
    workflowType: RUN_BULK_JOB,
    input: { jobId: 'whj_1' },
    activities: { processBulkJob: async () => failing(), stopBulkJob: async () => undefined },
    cancels: true,
  },
  {
    name: 'verify-domain.verified',
    workflowType: VERIFY_DOMAIN,
    input: { domainId: 'dom_1', generation: 1 },
    activities: { checkDomainRecords: once(missing, 'verified') },
  },
  {
    name: 'verify-domain.checked-now',
    workflowType: VERIFY_DOMAIN,
    input: { domainId: 'dom_1', generation: 1 },
    activities: { checkDomainRecords: once(missing, 'verified') },
    signals: [{ name: CHECK_NOW, args: [] }],
  },
  {
    name: 'verify-domain.canceled',
    workflowType: VERIFY_DOMAIN,
    input: { domainId: 'dom_1', generation: 1 },
    activities: { checkDomainRecords: async () => missing(), stopVerification: async () => undefined },
    cancels: true,
  },
  {
    name: 'export-organization.ready',
    workflowType: EXPORT_ORGANIZATION,
    input: { exportId: 'exp_1' },
    activities: { writeArchive: once(failing, { status: 'ready', progress: '2 of 2 files' }) },
  },
  {
    name: 'export-organization.canceled',
    workflowType: EXPORT_ORGANIZATION,
    input: { exportId: 'exp_1' },
    activities: { writeArchive: async () => failing(), abortExport: async () => 'canceled' },
    signals: [{ name: CANCEL_EXPORT, args: [] }],
  },
  {
    name: 'recheck-domains.looked',
    workflowType: RECHECK_DOMAINS,
    input: {},
    activities: { recheckVerifiedDomains: async () => ({ rechecked: 1 }) },
  },
  {
    name: 'reconcile.swept',
    workflowType: RECONCILE,
    input: {},
    activities: { reconcileOverdue: async () => ({ outbox: 0 }) },
  },
  {
    name: 'purge-inbox.purged',
    workflowType: PURGE_INBOX,
    input: { inboxId: 'inb_1' },
    activities: { purgeInboxMail: async () => ({ messages: 2, threads: 1 }) },
  },
  {
    name: 'move-thread-messages.moved',
    workflowType: MOVE_THREAD_MESSAGES,
    input: { threadId: 'thr_1' },
    activities: { moveMergedMessages: async () => 1_500 },
  },
  {
    name: 'apply-retention.warned',
    workflowType: APPLY_RETENTION,
    input: { organizationId: 'org_1' },
    activities: { reviewRetention: async () => ({ cutoff: null, warnings: 1 }) },
  },
  {
    name: 'apply-retention.deleted-in-slices',
    workflowType: APPLY_RETENTION,
    input: { organizationId: 'org_1' },
    activities: {
      reviewRetention: async () => ({ cutoff: longAgo, warnings: 0 }),
      deleteExpiredMail: once(() => slice('more', 200), slice('done', 300)),
    },
  },
  {
    name: 'apply-retention.postponed',
    workflowType: APPLY_RETENTION,
    input: { organizationId: 'org_1' },
    activities: {
      reviewRetention: async () => ({ cutoff: longAgo, warnings: 0 }),
      deleteExpiredMail: once(failing, slice('stopped', 200)),
      postponeRetention: async () => `postponed until ${longAgo}`,
    },
    signals: [{ name: POSTPONE_RETENTION, args: [{ days: 14 }] }],
  },
  {
    name: 'enforce-payment-grace.recovered',
    workflowType: ENFORCE_PAYMENT_GRACE,
    input: { graceId: 'grc_1' },
    activities: { reviewGrace: once(() => graceStep('waiting', inDays(400)), 'recovered') },
    signals: [{ name: PAYMENT_RECOVERED, args: [] }],
  },
  {
    name: 'enforce-payment-grace.suspended-then-ended',
    workflowType: ENFORCE_PAYMENT_GRACE,
    input: { graceId: 'grc_1' },
    activities: { reviewGrace: once(() => graceStep('suspended', longAgo), 'ended') },
  },
  {
    name: 'enforce-payment-grace.suspended-then-recovered',
    workflowType: ENFORCE_PAYMENT_GRACE,
    input: { graceId: 'grc_1' },
    activities: { reviewGrace: once(() => graceStep('suspended', inDays(400)), 'recovered') },
    signals: [{ name: PAYMENT_RECOVERED, args: [] }],
  },
  {
    name: 'enforce-payment-grace.canceled',
    workflowType: ENFORCE_PAYMENT_GRACE,
    input: { graceId: 'grc_1' },
    activities: { reviewGrace: async () => graceStep('waiting', inDays(400)) },
    cancels: true,
  },
  {
    name: 'enforce-payment-grace.extended',
    workflowType: ENFORCE_PAYMENT_GRACE,
    input: { graceId: 'grc_1' },
    activities: {
      reviewGrace: once(() => graceStep('suspended', inDays(400)), 'recovered'),
      extendGrace: async () => undefined,
    },
    signals: [{ name: EXTEND_GRACE, args: [{ days: 7 }] }],
  },
  {
    name: 'sync-subscription.read-back',
    workflowType: SYNC_SUBSCRIPTION,
    input: { subscriptionId: 'sub_1' },
    activities: { syncSubscription: async () => 'active' },
  },
  {
    name: 'reconcile-billing.requested',
    workflowType: RECONCILE_BILLING,
    input: {},
    activities: { requestReadBacks: async () => 2 },
  },
  {
    name: 'meter-usage.reported',
    workflowType: METER_USAGE,
    input: {},
    activities: {
      settleMeteredHours: async () => 2,
      reportMeteredHours: async () => ({ reported: 2, refused: 0 }),
    },
  },
  {
    name: 'find-orphaned-objects.registered',
    workflowType: FIND_ORPHANED_OBJECTS,
    input: {},
    activities: { registerOrphanedObjects: async () => ({ scanned: 2, registered: 1 }) },
  },
  {
    name: 'settle-held-work.reinstated',
    workflowType: SETTLE_HELD_WORK,
    input: { organizationId: 'org_1', suspension: { id: 'sus_1', change: 'reinstated' } },
    activities: {
      rejectHeldWork: async () => 'nothing',
      releaseHeldWork: async () => '1 message(s)',
      recordSuspensionSettled: async () => undefined,
    },
  },
  {
    name: 'settle-held-work.limits-changed',
    workflowType: SETTLE_HELD_WORK,
    input: { organizationId: 'org_1', suspension: null },
    activities: { releaseHeldWork: async () => '1 message(s)' },
  },
  {
    name: 'start-retention.started',
    workflowType: START_RETENTION,
    input: {},
    activities: { startRetentionRuns: async () => 2 },
  },
  {
    name: 'run-staff-job.completed',
    workflowType: RUN_STAFF_JOB,
    input: { jobId: 'sjb_1' },
    activities: { processStaffJob: async () => 'completed: 2 of 2 accepted' },
  },
  {
    name: 'run-staff-job.canceled',
    workflowType: RUN_STAFF_JOB,
    input: { jobId: 'sjb_1' },
    activities: { processStaffJob: async () => failing(), stopStaffJob: async () => undefined },
    cancels: true,
  },
  {
    name: 'check-usage.notified',
    workflowType: CHECK_USAGE,
    input: {},
    activities: { notifyThresholds: async () => ({ organizations: 2, notified: 1 }) },
  },
];

/** `npm run histories:record -- send-message` records only the paths whose names begin so. */
const wanted = process.argv.slice(2);
const isWanted = ({ name }: Path): boolean =>
  wanted.length === 0 || wanted.some((prefix) => name.startsWith(prefix));

const FOLDER = fileURLToPath(new URL('../workflows/histories', import.meta.url));

await mkdir(FOLDER, { recursive: true });
for (const path of PATHS.filter(isWanted)) {
  // A clock of its own: another path may have skipped beyond the times of this one.
  const environment = await startWorkflowEnvironment();
  await writeFile(`${FOLDER}/${path.name}.json`, await record(environment, path));
  await environment.stop();
  console.log(`recorded ${path.name}`);
}

async function record(
  { temporal, withWorker }: WorkflowTestEnvironment,
  { workflowType, input, activities, signals = [], cancels = false }: Path,
): Promise<string> {
  const taskQueue = randomUUID();
  return withWorker(taskQueue, activities, async () => {
    const handle = await temporal.client.workflow.start(workflowType, {
      taskQueue,
      workflowId: randomUUID(),
      args: [input],
    });
    const waits = signals.length > 0 || cancels;
    if (waits && Object.keys(activities).length > 0) await untilAtRest(handle.workflowId);
    for (const { name, args } of signals) await handle.signal(name, ...args);
    if (cancels) await handle.cancel();
    // Waiting for the result skips time, past the timers and timeouts of what the run does about the signal.
    if (waits) await untilAtRest(handle.workflowId);
    await handle.result().catch(() => undefined);
    return historyToJSON(await handle.fetchHistory());
  });

  /** Until the run has ended or rests: a timer, a retry or a wait, with nothing left to do for the worker. */
  async function untilAtRest(workflowId: string): Promise<void> {
    for (let length = 0, same = 0; same < 5; ) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      const { historyLength } = await temporal.client.workflow.getHandle(workflowId).describe();
      same = historyLength === length ? same + 1 : 0;
      length = historyLength;
    }
  }
}
