import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { PURGE_ORGANIZATION } from '../../workflows/deletions/purge.contract.ts';
import { VERIFY_DOMAIN } from '../../workflows/domains/verify-domain.contract.ts';
import { EXPORT_ORGANIZATION } from '../../workflows/exports/export-organization.contract.ts';
import { SEND_NOTIFICATION } from '../../workflows/notifications/send-notification.contract.ts';
import { DELIVER_WEBHOOK } from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { eventually } from '../support/eventually.ts';
import { untilActivityCancelRequested } from '../support/until-activity-cancel-requested.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const environment = useWorkflowEnvironment();

const RUNS = [
  {
    type: VERIFY_DOMAIN,
    input: { domainId: 'dom_1', generation: 1 },
    attempt: 'checkDomainRecords',
    settle: 'stopVerification',
  },
  {
    type: DELIVER_WEBHOOK,
    input: { deliveryId: 'whd_1', generation: 1 },
    attempt: 'attemptDelivery',
    settle: 'cancelDelivery',
  },
  {
    type: PURGE_ORGANIZATION,
    input: { deletionId: 'del_1', dueAt: '2020-01-01T00:00:00.000Z' },
    attempt: 'purgeOrganizationData',
    settle: 'stopPurge',
    others: { beginPurge: async () => 'purging' },
  },
  {
    type: EXPORT_ORGANIZATION,
    input: { exportId: 'exp_1' },
    attempt: 'writeArchive',
    settle: 'abortExport',
    argument: { status: 'canceled' },
  },
  {
    type: SEND_NOTIFICATION,
    input: { notificationId: 'ntf_1' },
    attempt: 'attemptNotification',
    settle: 'stopNotification',
  },
];

describe('a run that an operator cancels while an attempt is in progress', () => {
  test.each(RUNS)('of $type is canceled and settles its row, even if the attempt then fails', async (run) => {
    const attempt = Promise.withResolvers<never>();
    const settled: unknown[] = [];
    let attempts = 0;
    const activities = {
      ...run.others,
      [run.attempt]: () => {
        attempts += 1;
        return attempt.promise;
      },
      [run.settle]: async (argument: unknown) => {
        settled.push(argument);
        return 'stopped';
      },
    };
    const taskQueue = randomUUID();
    await environment.withWorker(
      taskQueue,
      activities,
      async () => {
        const handle = await environment.temporal.client.workflow.start(run.type, {
          taskQueue,
          workflowId: randomUUID(),
          args: [run.input],
        });
        await eventually(() => expect(attempts).toBe(1));
        await handle.cancel();
        // The worker has handled the cancellation before the attempt fails.
        await untilActivityCancelRequested(handle);
        // The test server does not end a retryable failure after a cancellation; a real server does.
        attempt.reject(ApplicationFailure.nonRetryable('Failed.', 'Failed'));
        await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
        expect((await handle.describe()).status.name).toBe('CANCELLED');
      },
      { signalsWhileExecuting: true },
    );
    expect(settled).toEqual([expect.objectContaining({ ...run.argument })]);
  });
});
