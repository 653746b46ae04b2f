import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createStaffJobRunner } from '../../domain/workflow-runs/staff-job-runner.ts';
import { newId } from '../../platform/ids.ts';
import type { WorkflowRun, WorkflowRunEnd } from '../../platform/temporal-runs/workflow-run.ts';
import { sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import { ambiguous } from '../support/mail-services.ts';
import { createOrganization } from '../support/organizations.ts';
import { arrangeAmbiguousSend, arrangeSending, dispatchOnce } from '../support/outbound-mail.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';
import { type Call, recordingOutbox } from '../support/test-app.ts';

const app = useTestApp({ config: { TEMPORAL_UI_URL: 'https://temporal.test/' } });

const HOUR_MS = 3_600_000;
let created = 0;

/** A staff member and an organization with one run. */
async function arrange(run: Partial<WorkflowRun> = {}, role: 'support' | 'admin' = 'support') {
  const { organizationId, token } = await createOrganization(app.worker);
  const staff = await createStaff(app, { role });
  created += 1;
  const added = app.temporalRuns.add({
    workflowId: `send/msg_${created}`,
    type: 'sendMessage',
    startedAt: new Date(Date.now() - HOUR_MS),
    ...run,
    searchAttributes: { OrgId: organizationId, Stage: 'deferred', ...run.searchAttributes },
  });
  const before = app.commands.length;
  return {
    organizationId,
    staff,
    run: added,
    /** Acts on the run. */
    act: (action: string, body: object = { note: 'Ticket 7' }, id = added.workflowId) =>
      app.call(`/admin/workflows/${encodeURIComponent(id)}/${action}`, {
        method: 'POST',
        token: staff.token,
        body,
      }),
    commands: () => app.commands.slice(before),
    ownLog: async () => (await app.call('/org/audit-log', { token })).json().data,
    get: (path: string, call: Call = {}) => app.call(path, { token: staff.token, ...call }),
  };
}

const failing: WorkflowRun['pendingActivities'] = [
  {
    id: '7',
    type: 'attemptDelivery',
    attempt: 4,
    state: 'waiting',
    lastFailure: 'DeliveryFailed: HTTP 500',
    lastStartedAt: new Date('2026-11-22T11:00:00.000Z'),
    nextAttemptAt: new Date('2026-11-22T12:30:00.000Z'),
  },
];

describe('the list of runs', () => {
  test('shows what is stuck, why, and what can be done', async () => {
    const { run, organizationId, get } = await arrange({
      type: 'deliverWebhook',
      pendingActivities: failing,
      searchAttributes: { Stage: 'delivering', ResourceId: 'whe_1', RequestId: 'req_1' },
    });
    const { data } = (await get(`/admin/workflows?org_id=${organizationId}`)).json();
    expect(data).toEqual([
      {
        object: 'workflow_run',
        workflow_id: run.workflowId,
        run_id: run.runId,
        type: 'deliverWebhook',
        status: 'running',
        stage: 'delivering',
        result: null,
        failure: null,
        org_id: organizationId,
        inbox_id: null,
        resource_id: 'whe_1',
        related_id: null,
        request_id: 'req_1',
        summary: null,
        started_at: run.startedAt.toISOString(),
        closed_at: null,
        attempt: 4,
        last_failure: 'DeliveryFailed: HTTP 500',
        next_attempt_at: '2026-11-22T12:30:00.000Z',
        actions: ['retry', 'cancel', 'terminate'],
        temporal_ui_url: `https://temporal.test/namespaces/default/workflows/${encodeURIComponent(run.workflowId)}/${run.runId}/history`,
      },
    ]);
  });

  test('is filtered by stage, type, age, status and failure, and has pages', async () => {
    const { organizationId, get } = await arrange({ pendingActivities: failing });
    const add = (run: Partial<WorkflowRun>, Stage = 'deferred') => {
      created += 1;
      app.temporalRuns.add({
        workflowId: `send/msg_${created}`,
        type: 'sendMessage',
        ...run,
        searchAttributes: { OrgId: organizationId, Stage },
      });
    };
    add({ type: 'receiveMessage' });
    add({}, 'needs_attention');
    add({ status: 'failed' });
    const count = async (query: string) => {
      const response = await get(`/admin/workflows?org_id=${organizationId}&${query}`);
      return response.json().data.length;
    };
    expect(await count('')).toBe(3);
    expect(await count('type=receiveMessage')).toBe(1);
    expect(await count('stage=needs_attention')).toBe(1);
    expect(await count('status=failed')).toBe(1);
    expect(await count('older_than_seconds=1800')).toBe(1);
    expect(await count('failing=true')).toBe(2);
    expect(await count('about=msg_of_nothing')).toBe(0);
    const first = (await get(`/admin/workflows?org_id=${organizationId}&limit=2`)).json();
    expect([first.data.length, first.has_more]).toEqual([2, true]);
    const second = await get(`/admin/workflows?org_id=${organizationId}&limit=2&cursor=${first.next_cursor}`);
    expect([second.json().data.length, second.json().next_cursor]).toEqual([1, null]);
    const elsewhere = await get(`/admin/workflows?limit=2&cursor=${first.next_cursor}`);
    expectProblem(elsewhere, 'invalid_cursor');
  });

  test('has full pages of the runs that fail, also if runs close between two pages', async () => {
    const { organizationId, get } = await arrange({ status: 'completed' });
    const added = Array.from({ length: 60 }, (_, index) => {
      created += 1;
      return app.temporalRuns.add({
        workflowId: `send/msg_${created}`,
        type: 'sendMessage',
        startedAt: new Date(Date.now() - HOUR_MS + index * 1_000),
        pendingActivities: index % 6 === 0 ? failing : [],
        searchAttributes: { OrgId: organizationId, Stage: 'deferred' },
      });
    }).reverse();
    const wanted = added.filter(({ pendingActivities }) => pendingActivities.length > 0);
    const path = `/admin/workflows?org_id=${organizationId}&failing=true`;
    const seen: string[] = [];
    const sizes: number[] = [];
    for (let cursor = ''; ; ) {
      const { data, has_more, next_cursor } = (await get(`${path}&limit=3${cursor}`)).json();
      seen.push(...data.map(({ run_id }: { run_id: string }) => run_id));
      sizes.push(data.length);
      expect(has_more).toBe(next_cursor !== null);
      if (next_cursor === null) break;
      cursor = `&cursor=${next_cursor}`;
      // The last one that the page showed.
      if (sizes.length === 2) Object.assign(wanted[5] ?? {}, { status: 'completed' });
    }
    expect(seen).toEqual(wanted.map(({ runId }) => runId));
    expect(sizes).toEqual([3, 3, 3, 1]);
  });

  test('examines a bounded number of runs for a page, and its cursor continues behind them', async () => {
    const { organizationId, run, get } = await arrange({ pendingActivities: failing });
    for (let index = 0; index < 550; index += 1)
      app.temporalRuns.add({
        workflowId: `send/healthy_${organizationId}_${index}`,
        type: 'sendMessage',
        searchAttributes: { OrgId: organizationId, Stage: 'deferred' },
      });
    const path = `/admin/workflows?org_id=${organizationId}&failing=true`;
    const first = (await get(path)).json();
    expect([first.data, first.has_more]).toEqual([[], true]);
    const second = (await get(`${path}&cursor=${first.next_cursor}`)).json();
    expect(second.data).toMatchObject([{ run_id: run.runId }]);
    expect(second.has_more).toBe(false);
  });

  test('finds the runs about an id: a resource, what it belongs to, an inbox, a request', async () => {
    const id = (name: string) => `${name}_${newId('request')}`;
    const attributes = {
      ResourceId: id('whe'),
      RelatedId: id('evt'),
      InboxId: id('inb'),
      RequestId: id('req'),
    };
    const { run, organizationId, get } = await arrange({ searchAttributes: attributes });
    app.temporalRuns.add({
      workflowId: id('send'),
      type: 'sendMessage',
      searchAttributes: { OrgId: organizationId },
    });
    for (const about of Object.values(attributes)) {
      const { data } = (await get(`/admin/workflows?about=${about}`)).json();
      expect(data.map(({ workflow_id }: { workflow_id: string }) => workflow_id)).toEqual([run.workflowId]);
    }
  });

  test('finds a failing run behind many that wait for delivery reports', async () => {
    const { run, organizationId, get } = await arrange({ pendingActivities: failing });
    for (let index = 0; index < 520; index += 1)
      app.temporalRuns.add({
        workflowId: `delivery/${organizationId}/${index}`,
        type: 'trackDelivery',
        searchAttributes: { OrgId: organizationId, Stage: 'awaiting_reports' },
      });
    const { data } = (await get(`/admin/workflows?org_id=${organizationId}&failing=true`)).json();
    expect(data.map(({ workflow_id }: { workflow_id: string }) => workflow_id)).toEqual([run.workflowId]);
  });

  test('has nothing of Temporal itself: a schedule is a workflow that must not end', async () => {
    const { run, act, get, commands } = await arrange(
      { workflowId: 'temporal-sys-scheduler:reconcile', type: 'temporal-sys-scheduler-workflow' },
      'admin',
    );
    const path = `/admin/workflows/${encodeURIComponent(run.workflowId)}`;
    expectProblem(await get(path), 'not_found');
    expect((await get(`/admin/workflows?type=temporal`)).json().data).toEqual([]);
    for (const action of ['cancel', 'terminate', 'retry']) expectProblem(await act(action), 'not_found');
    expect(commands()).toEqual([]);
  });

  test('refuses malformed filters, and says when Temporal is away', async () => {
    const { get, act } = await arrange();
    for (const query of ['stage=a"b', 'type=x y', 'workflow_id=a%22', 'status=stuck'])
      expectProblem(await get(`/admin/workflows?${query}`), 'validation_error');
    app.temporalRuns.isAvailable = false;
    try {
      expectProblem(await get('/admin/workflows'), 'unavailable');
      expectProblem(await get('/admin/workflows/send%2Fmsg_1'), 'unavailable');
      expectProblem(await act('retry'), 'unavailable');
    } finally {
      app.temporalRuns.isAvailable = true;
    }
  });
});

describe('one run', () => {
  test('has its pending activities, details and newest events', async () => {
    const { run, get } = await arrange({ pendingActivities: failing });
    app.temporalRuns.details = 'Next attempt at 2026-11-22T12:30:00.000Z.';
    app.temporalRuns.events = [
      { id: 9, at: new Date(0), type: 'activityTaskFailed', name: 'attemptDelivery', detail: 'HTTP 500' },
    ];
    const expected = {
      workflow_id: run.workflowId,
      current_details: 'Next attempt at 2026-11-22T12:30:00.000Z.',
      history_length: 11,
      pending_activities: [{ type: 'attemptDelivery', state: 'waiting', attempt: 4 }],
      history: [{ id: 9, type: 'activityTaskFailed', name: 'attemptDelivery', detail: 'HTTP 500' }],
    };
    const id = encodeURIComponent(run.workflowId);
    expect((await get(`/admin/workflows/${id}`)).json()).toMatchObject(expected);
    expect((await get(`/admin/workflows/run?workflow_id=${id}`)).json()).toMatchObject(expected);
  });

  test('says how it ended, in the list and alone, and shows no stage of work that is over', async () => {
    const { organizationId, get, run: held } = await arrange({ status: 'failed' });
    const add = (status: WorkflowRun['status'], end: WorkflowRunEnd) => {
      created += 1;
      const run = app.temporalRuns.add({
        workflowId: `send/msg_${created}`,
        type: 'sendMessage',
        status,
        searchAttributes: { OrgId: organizationId, Stage: 'sending' },
      });
      app.temporalRuns.ends.set(run.runId, end);
    };
    app.temporalRuns.ends.set(held.runId, {
      result: null,
      failure: { type: 'HeldBySuspension', message: 'The message is held.' },
    });
    add('failed', { result: null, failure: { type: 'Defect', message: 'It broke.' } });
    add('completed', { result: 'sent', failure: null });
    add('terminated', { result: null, failure: { type: 'Terminated', message: 'Ticket 7' } });
    add('canceled', { result: 'run canceled, message canceled', failure: null });
    add('running', { result: null, failure: null });
    const endsOf = async (status: string) =>
      (await get(`/admin/workflows?org_id=${organizationId}&status=${status}`))
        .json()
        .data.map(({ stage, result, failure, last_failure }: Record<string, unknown>) => [
          ...[stage, result, failure, last_failure],
        ]);
    expect(await endsOf('failed')).toEqual([
      [null, null, 'Defect: It broke.', null],
      [null, 'held', 'HeldBySuspension: The message is held.', null],
    ]);
    expect(await endsOf('completed')).toEqual([[null, 'sent', null, null]]);
    expect(await endsOf('terminated')).toEqual([[null, null, 'Terminated: Ticket 7', null]]);
    expect(await endsOf('canceled')).toEqual([[null, 'run canceled, message canceled', null, null]]);
    expect(await endsOf('running')).toEqual([['sending', null, null, null]]);
    const shown = await get(`/admin/workflows/${encodeURIComponent(held.workflowId)}`);
    expect(shown.json()).toMatchObject({ status: 'failed', stage: null, result: 'held' });
  });

  test('has no stage to filter by once it has ended', async () => {
    const { staff, get } = await arrange({}, 'admin');
    for (const status of ['completed', 'failed'])
      expectProblem(await get(`/admin/workflows?status=${status}&stage=sending`), 'validation_error');
    const body = { action: 'retry', note: 'Ticket 7', query: { status: 'failed', stage: 'sending' } };
    const options = { method: 'POST', token: staff.token, body } as const;
    expectProblem(await app.call('/admin/workflows/bulk', options), 'validation_error');
  });

  test('is not found, or has no valid id', async () => {
    const { get, act, commands } = await arrange();
    expectProblem(await get('/admin/workflows/send%2Fmsg_unknown'), 'not_found');
    expectProblem(await get('/admin/workflows/a%20b'), 'validation_error');
    expectProblem(await act('retry', { note: 'x' }, 'send/msg_unknown'), 'not_found');
    expectProblem(await act('retry', {}), 'validation_error');
    expectProblem(await act('retry', { note: '' }), 'validation_error');
    expect(commands()).toEqual([]);
  });
});

describe('an action', () => {
  test('is recorded with its reason in both logs, and signals the run', async () => {
    const { run, act, commands, ownLog, staff, get } = await arrange();
    const response = await act('retry');
    expect([response.statusCode, response.json()]).toEqual([
      202,
      {
        object: 'run_action',
        workflow_id: run.workflowId,
        type: 'sendMessage',
        action: 'retry',
        effect: 'signaled',
      },
    ]);
    expect(commands()).toEqual([
      { signal: { workflowId: run.workflowId, signalName: 'retryNow', args: [] } },
    ]);
    const entry = {
      action: 'workflow.retried',
      resource: { type: 'workflow', id: run.workflowId },
      reason: 'Ticket 7',
      details: { type: 'sendMessage', stage: 'deferred', effect: 'signaled' },
    };
    expect((await ownLog())[0]).toMatchObject({ ...entry, actor: { kind: 'staff', id: staff.userId } });
    expect((await get(`/admin/audit-log?staff_id=${staff.userId}`)).json().data).toMatchObject([entry]);
  });

  test.each([
    { type: 'verifyDomain', action: 'retry', signal: 'checkNow', args: [] },
    { type: 'receiveMessage', action: 'retry', signal: 'retryNow', args: [] },
    { type: 'receiveMessage', action: 'cancel', signal: 'discard', args: ['Ticket 7'] },
    { type: 'sendMessage', action: 'cancel', signal: 'cancel', args: [] },
    { type: 'sendScheduledDraft', action: 'cancel', signal: 'unschedule', args: [] },
    { type: 'purgeOrganization', action: 'cancel', signal: 'cancel', args: [] },
  ])('$action of $type is the signal $signal', async ({ type, action, signal, args }) => {
    const { run, act, commands } = await arrange({ type });
    expect((await act(action)).statusCode).toBe(202);
    expect(commands()).toEqual([{ signal: { workflowId: run.workflowId, signalName: signal, args } }]);
  });

  test('cancels the run itself if its type has no signal for it, or heeds it no longer', async () => {
    for (const { type, Stage } of [
      { type: 'verifyDomain', Stage: 'pending' },
      { type: 'purgeOrganization', Stage: 'purging' },
    ]) {
      const { run, act, commands } = await arrange({ type, searchAttributes: { Stage } });
      expect((await act('cancel')).json()).toMatchObject({ effect: 'cancellation_requested' });
      expect(commands()).toEqual([{ control: { workflowId: run.workflowId, action: 'cancel' } }]);
    }
  });

  test('retries the activities of a run without a signal for it', async () => {
    const { run, act, commands } = await arrange({ type: 'purgeInbox', pendingActivities: failing });
    expect((await act('retry')).json()).toMatchObject({ effect: 'activities_retried' });
    expect(commands()).toEqual([{ control: { workflowId: run.workflowId, action: 'retryActivities' } }]);
  });

  test('resumes a paused activity, also of a type with a signal, and such a run is listed as failing', async () => {
    const paused = failing.map((activity) => ({ ...activity, state: 'paused' as const, lastFailure: null }));
    const { run, organizationId, act, commands, get } = await arrange({ pendingActivities: paused });
    const { data } = (await get(`/admin/workflows?org_id=${organizationId}&failing=true`)).json();
    expect(data).toMatchObject([{ workflow_id: run.workflowId }]);
    expect((await act('retry')).json()).toMatchObject({ effect: 'activities_retried' });
    expect(commands()).toEqual([{ control: { workflowId: run.workflowId, action: 'retryActivities' } }]);
  });

  test.each(['failed', 'canceled', 'terminated', 'timed_out'] as const)(
    'starts a run that is %s again, with the input it had',
    async (status) => {
      const { run, act, commands } = await arrange({ type: 'applyRetention', status });
      expect((await act('retry')).json()).toMatchObject({ effect: 'started' });
      expect(commands()).toEqual([
        { start: expect.objectContaining({ workflowId: run.workflowId, input: { from: 'history' } }) },
      ]);
    },
  );

  test('is refused if it would change nothing', async () => {
    const refused: [Partial<WorkflowRun>, string, object?][] = [
      [{ status: 'completed' }, 'retry'],
      [{ status: 'failed' }, 'cancel'],
      [{ type: 'probeEndpoint' }, 'cancel'],
      [{ type: 'purgeInbox' }, 'retry'],
      [{ type: 'enforcePaymentGrace' }, 'cancel'],
      [{ type: 'syncSubscription' }, 'cancel'],
      [{ type: 'settleHeldWork' }, 'cancel'],
      [{ type: 'releaseHeld' }, 'cancel'],
      [{ type: 'mailAnnouncement' }, 'cancel'],
      [{ searchAttributes: { Stage: 'deferred' } }, 'resolve', { note: 'x', resolution: 'sent' }],
    ];
    for (const [run, action, body] of refused) {
      const { act, commands, ownLog } = await arrange(run);
      expectProblem(await act(action, body), 'conflict');
      expect([commands(), await ownLog()]).toEqual([[], []]);
    }
  });

  test('resolves an ambiguous send, for one recipient if given, as decided now', async () => {
    const { run, act, commands, ownLog, get } = await arrange({
      workflowId: await arrangeAmbiguousSend(app.worker),
      searchAttributes: { Stage: 'needs_attention' },
    });
    expectProblem(await act('resolve', { note: 'In the log', resolution: 'maybe' }), 'validation_error');
    const other = await act('resolve', { note: 'In the log', resolution: 'sent', recipient: 0 });
    expect(expectProblem(other, 'conflict').fix).toContain(': 1.');
    const shown = (await get(`/admin/workflows/${encodeURIComponent(run.workflowId)}`)).json();
    expect(shown.actions).toEqual(['terminate', 'resolve']);
    const body = { note: 'In the log', resolution: 'sent', recipient: 1 };
    expect((await act('resolve', body)).statusCode).toBe(202);
    expect(commands()).toEqual([
      {
        signal: {
          workflowId: run.workflowId,
          signalName: 'resolveAmbiguous',
          args: [{ resolution: 'sent', recipient: 1, decidedAt: expect.stringMatching(/Z$/) }],
        },
      },
    ]);
    expect((await ownLog())[0]).toMatchObject({
      action: 'workflow.resolved',
      details: { resolution: 'sent', recipient: 1 },
    });
    // Nothing is left that a retry would send, or that could be canceled.
    for (const action of ['retry', 'cancel'])
      expect(expectProblem(await act(action), 'conflict').fix).toContain('resolve');
  });

  test('resolves the send of a message that was purged, which ends its run', async () => {
    const { act, commands } = await arrange({ searchAttributes: { Stage: 'needs_attention' } });
    expect((await act('resolve', { note: 'Purged', resolution: 'sent' })).statusCode).toBe(202);
    expect(commands()).toMatchObject([{ signal: { signalName: 'resolveAmbiguous' } }]);
  });

  test('does not resolve a send that stopped after a failure, and says what settles it', async () => {
    const { run, act, commands, ownLog, get } = await arrange({
      workflowId: sendMessageWorkflowId(await (await arrangeSending(app.worker)).send('a@people.example')),
      searchAttributes: { Stage: 'needs_attention' },
    });
    const refused = await act('resolve', { note: 'x', resolution: 'resend' });
    expect(expectProblem(refused, 'conflict')).toMatchObject({
      detail: expect.stringContaining('stopped'),
      fix: expect.stringContaining('retry'),
    });
    expect([commands(), await ownLog()]).toEqual([[], []]);
    const { data } = (await get(`/admin/workflows?workflow_id=${run.workflowId}`)).json();
    expect(data).toMatchObject([{ actions: ['retry', 'cancel', 'terminate'] }]);
    expect((await act('retry')).json()).toMatchObject({ effect: 'signaled' });
  });

  test('starts no send again whose recipients all have an outcome', async () => {
    const world = await arrangeSending(app.worker);
    const messageId = await world.send('a@people.example');
    await dispatchOnce(world, messageId);
    const { act, commands, get, run } = await arrange({
      workflowId: sendMessageWorkflowId(messageId),
      status: 'canceled',
    });
    expect(expectProblem(await act('retry'), 'conflict').detail).toContain('has an outcome');
    expect(commands()).toEqual([]);
    const { data } = (await get(`/admin/workflows?status=canceled&workflow_id=${run.workflowId}`)).json();
    expect(data).toMatchObject([{ actions: [] }]);
  });

  test('terminates for admins alone, with the reason', async () => {
    const support = await arrange();
    expectProblem(await support.act('terminate'), 'permission_denied');
    const { run, act, commands } = await arrange({}, 'admin');
    expect((await act('terminate')).json()).toMatchObject({ effect: 'terminated' });
    expect(commands()).toEqual([
      { control: { workflowId: run.workflowId, action: 'terminate', reason: 'Ticket 7' } },
    ]);
  });

  test('names the run in the query, too, and works for runs of no organization', async () => {
    const { commands, get } = await arrange();
    const run = app.temporalRuns.add({ workflowId: 'reconcile-workflow-1', type: 'reconcile' });
    const response = await get(`/admin/workflows/cancel?workflow_id=${run.workflowId}`, {
      method: 'POST',
      body: { note: 'Hangs' },
    });
    expect(response.statusCode).toBe(202);
    expect(commands()).toEqual([{ control: { workflowId: run.workflowId, action: 'cancel' } }]);
  });
});

describe('the purge of an organization that was stopped', () => {
  async function arrangeStopped(fields: Partial<WorkflowRun> = {}) {
    const { organizationId, get, staff } = await arrange();
    const deletionId = newId('deletion');
    await query(
      app.worker,
      sql`insert into deletions (id, kind, subject_id, deleted_by, status, deleted_at, due_at, ended_at)
      values (${deletionId}, 'organization', ${organizationId}, ${staff.userId}, 'stopped', now(), now(), now())
      returning id`,
    );
    const workflowId = `purge-organization/${organizationId}/${deletionId}`;
    app.temporalRuns.add({ workflowId, type: 'purgeOrganization', status: 'completed', ...fields });
    const retry = () =>
      get(`/admin/workflows/retry?workflow_id=${workflowId}`, {
        method: 'POST',
        body: { note: 'As agreed' },
      });
    return { organizationId, deletionId, workflowId, retry };
  }

  test('is resumed by retrying its run, once', async () => {
    const { workflowId, deletionId, retry } = await arrangeStopped();
    const responses = await Promise.all([retry(), retry()]);
    const resumed = responses.find(({ statusCode }) => statusCode === 202);
    expect(resumed?.json()).toMatchObject({ workflow_id: `${workflowId}/2`, effect: 'started' });
    expectProblem(responses.find((response) => response !== resumed) as never, 'conflict');
    expect(app.commands.at(-1)?.start).toMatchObject({
      workflowId: `${workflowId}/2`,
      input: { deletionId },
    });
    const rows = await query(
      app.worker,
      sql`select status, generation from deletions where id = ${deletionId}`,
    );
    expect(rows).toEqual([{ status: 'waiting', generation: 2 }]);
  });

  test('is resumed after Temporal has forgotten the run', async () => {
    const { workflowId, retry } = await arrangeStopped({ workflowId: 'another' });
    expect((await retry()).json()).toMatchObject({ workflow_id: `${workflowId}/2` });
    expectProblem(await retry(), 'not_found');
  });
});

describe('an action on many runs', () => {
  /** Runs the job as the maintenance worker does. */
  async function runJob(id: string) {
    const { outbox, commands } = recordingOutbox();
    const jobs = createStaffJobRunner({ database: app.worker, outbox, runs: app.temporalRuns });
    return { result: await jobs.run(id, () => undefined), commands, jobs };
  }

  test('acts on every run that matches, and shows its progress and what it left out', async () => {
    const { organizationId, get, staff, ownLog } = await arrange({}, 'admin');
    const runs = Array.from({ length: 60 }, () => {
      created += 1;
      return app.temporalRuns.add({
        workflowId: `webhook/whd_${created}`,
        type: 'deliverWebhook',
        startedAt: new Date(Date.now() - HOUR_MS),
        searchAttributes: { OrgId: organizationId, Stage: 'delivering' },
      });
    });
    const probe = app.temporalRuns.add({
      workflowId: `webhook-probe/${organizationId}`,
      type: 'probeEndpoint',
      startedAt: new Date(Date.now() - HOUR_MS),
      searchAttributes: { OrgId: organizationId, Stage: 'delivering' },
    });
    const body = {
      action: 'cancel',
      note: 'Customer closed',
      query: { org_id: organizationId, stage: 'delivering' },
    };
    const response = await get('/admin/workflows/bulk', { method: 'POST', body });
    expect(response.statusCode).toBe(202);
    const job = response.json();
    expect(app.commands.at(-1)).toMatchObject({
      start: { workflowType: 'runStaffJob', workflowId: `staff-job/${job.id}`, input: { jobId: job.id } },
    });
    const { result, commands } = await runJob(job.id);
    expect(result).toBe('completed: 60 of 61 accepted');
    expect(commands.map(({ signal }) => [signal?.workflowId, signal?.signalName]).sort()).toEqual(
      runs.map(({ workflowId }) => [workflowId, 'cancel']).sort(),
    );
    const done = (await get(`/admin/workflows/jobs/${job.id}`)).json();
    expect(done).toMatchObject({
      status: 'completed',
      matched: 61,
      accepted: 60,
      refused: 1,
      problems: [
        {
          target: probe.workflowId,
          error: expect.stringMatching(
            /^A canceled run of this type would start again\. Disable the endpoint/,
          ),
        },
      ],
      staff_id: staff.userId,
    });
    expect((await get('/admin/workflows/jobs')).json().data).toContainEqual(done);
    expect((await ownLog())[0]).toMatchObject({
      action: 'workflow.canceled',
      reason: 'Customer closed',
      actor: { kind: 'staff', id: staff.userId },
    });
    expect((await runJob(job.id)).commands).toEqual([]);
  });

  test('resolves sends by a list from the relay’s log', async () => {
    const { get, staff } = await arrange({}, 'admin');
    const world = await arrangeSending(app.worker);
    world.transport.answerWith(async () => ambiguous);
    const [sent, resent] = [await world.send('a@people.example'), await world.send('b@people.example')];
    for (const id of [sent, resent]) await dispatchOnce(world, id);
    const domain = world.inbox.email.split('@')[1];
    const items = [
      { message: `<${sent}@${domain}>`, resolution: 'sent' },
      { message: resent, email: 'B@people.example', resolution: 'resend' },
      { message: sent, email: 'b@people.example', resolution: 'resend' },
      { message: 'unknown@people.example', resolution: 'sent' },
    ];
    const created = await get('/admin/workflows/bulk', {
      method: 'POST',
      body: { action: 'resolve', note: 'Relay crashed', items },
    });
    const job = created.json();
    const { result, commands } = await runJob(job.id);
    expect(result).toBe('completed: 2 of 4 accepted');
    // Signal-with-start: the run may be missing.
    expect(commands).toMatchObject([
      {
        start: { workflowId: `send/${sent}` },
        signal: { workflowId: `send/${sent}`, args: [{ resolution: 'sent', decidedAt: job.created_at }] },
      },
      { signal: { workflowId: `send/${resent}`, args: [{ resolution: 'resend', recipient: 0 }] } },
    ]);
    expect((await get(`/admin/workflows/jobs/${job.id}`)).json().problems).toEqual([
      { target: sent, error: 'The message has no recipient with this address whose outcome is unknown.' },
      { target: 'unknown@people.example', error: 'No message with this id has an unknown outcome.' },
    ]);
    const log = await get(`/admin/audit-log?staff_id=${staff.userId}&action=workflow.resolved`);
    expect(log.json().data).toHaveLength(2);
  });

  test('is stopped between two batches, and never continued', async () => {
    const { organizationId, get } = await arrange({}, 'admin');
    const body = { action: 'retry', note: 'x', query: { org_id: organizationId } };
    const job = (await get('/admin/workflows/bulk', { method: 'POST', body })).json();
    const { outbox } = recordingOutbox();
    const jobs = createStaffJobRunner({ database: app.worker, outbox, runs: app.temporalRuns });
    await jobs.stop(job.id);
    expect((await runJob(job.id)).commands).toEqual([]);
    expect((await get(`/admin/workflows/jobs/${job.id}`)).json()).toMatchObject({
      status: 'stopped',
      detail: 'Stopped by an operator.',
    });
  });

  test.each([
    { action: 'retry', note: 'x' },
    { action: 'retry', note: 'x', query: {}, items: [{ message: 'msg_1', resolution: 'sent' }] },
    { action: 'retry', note: 'x', items: [{ message: 'msg_1', resolution: 'sent' }] },
    { action: 'resolve', note: 'x', query: {} },
    { action: 'retry', note: 'x', query: {}, resolution: 'sent' },
    { action: 'retry', note: 'x', query: null },
    { action: 'cancel', note: 'x', query: {} },
    { action: 'terminate', note: 'x', query: { status: 'running', older_than_seconds: 60 } },
    { action: 'resolve', note: 'x', items: [] },
    {
      action: 'resolve',
      note: 'x',
      items: [{ message: 'msg_1', recipient: 0, email: 'a@b.example', resolution: 'sent' }],
    },
  ])('refuses %j', async (body) => {
    const { get } = await arrange({}, 'admin');
    expectProblem(await get('/admin/workflows/bulk', { method: 'POST', body }), 'validation_error');
  });

  test('is stopped if the admin who asked for it loses the role, or is suspended', async () => {
    for (const lose of [
      (userId: string) =>
        sql`update staff_members set role = 'support' where user_id = ${userId} returning user_id`,
      (userId: string) => sql`delete from staff_members where user_id = ${userId} returning user_id`,
      (userId: string) => sql`update users set status = 'suspended' where id = ${userId} returning id`,
    ]) {
      const { organizationId, staff, get } = await arrange({}, 'admin');
      const colleague = await createStaff(app, { role: 'support' });
      const body = { action: 'terminate', note: 'Ticket 7', query: { org_id: organizationId } };
      const job = (await get('/admin/workflows/bulk', { method: 'POST', body })).json();
      await query(app.worker, lose(staff.userId));
      expect((await runJob(job.id)).commands).toEqual([]);
      const { json } = await app.call(`/admin/workflows/jobs/${job.id}`, { token: colleague.token });
      expect(json()).toMatchObject({
        status: 'stopped',
        detail: expect.stringMatching(/^requester_not_allowed: /),
        accepted: 0,
      });
    }
  });

  test('is for admins alone, and not found under another id', async () => {
    const { get } = await arrange();
    const body = { action: 'retry', note: 'x', query: {} };
    expectProblem(await get('/admin/workflows/bulk', { method: 'POST', body }), 'permission_denied');
    expectProblem(await get('/admin/workflows/jobs/sjb_unknown'), 'not_found');
  });
});
