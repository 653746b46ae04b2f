import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { WorkflowFailedError, WorkflowIdReusePolicy, WorkflowUpdateFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { OutboundActivities } from '../../activities/outbound.activities.ts';
import { type SendState, settledAs } from '../../domain/outbound/message-status.ts';
import { createServiceMetrics } from '../../platform/service-metrics.ts';
import { runEndSinks } from '../../workers/run-context.ts';
import {
  CANCEL_SEND,
  HELD_FAILURE,
  OUTCOME_RECORDED,
  RESOLVE_AMBIGUOUS,
  RETRY_SEND_NOW,
  SEND_MESSAGE,
  SEND_RETRY_DELAYS_MS,
  type SendMessageInput,
  UNSENDABLE_FAILURE,
} from '../../workflows/outbound/send-message.contract.ts';
import { TRACK_DELIVERY } from '../../workflows/outbound/track-delivery.contract.ts';
import { eventually } from '../support/eventually.ts';
import { cancelDuringAttempt, holdingAttempt } from '../support/holding-attempt.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const environment = useWorkflowEnvironment();

type SendActivities = OutboundActivities;

const STATES = {
  settled: settledAs('sent'),
  deferred: { status: 'deferred', hasUnsent: true, ambiguous: [] },
  needs_attention: { status: 'needs_attention', hasUnsent: false, ambiguous: [0], messageIdLeft: 'msg_1' },
  /** The first recipient is ambiguous, the second deferred. */
  both: { status: 'needs_attention', hasUnsent: true, ambiguous: [0], messageIdLeft: 'msg_1' },
} satisfies Record<string, SendState>;

/** Fake activities whose `transmitMessage` and `recordSend` return these states in order; the last one repeats. */
function relay(names: (keyof typeof STATES)[], overrides: Partial<SendActivities> = {}) {
  const states: SendState[] = names.map((name) => STATES[name]);
  const calls: string[] = [];
  const transmittedAt: number[] = [];
  const nextState = () => (states.length > 1 ? states.shift() : states[0]) ?? STATES.settled;
  const activities: SendActivities = {
    async prepareSend() {
      calls.push('prepare');
      return 'proceed';
    },
    async transmitMessage() {
      calls.push('transmit');
      transmittedAt.push(await environment.temporal.currentTimeMs());
      return nextState();
    },
    async recordSend() {
      calls.push('record');
      return nextState();
    },
    async resolveAmbiguity({ resolution, recipient }) {
      calls.push(`resolve:${resolution}${recipient === undefined ? '' : `:${recipient}`}`);
      return resolution === 'sent' ? STATES.settled : STATES.deferred;
    },
    async cancelMessage() {
      calls.push('cancel');
      return settledAs('canceled');
    },
    async stopSend({ isFinal }) {
      calls.push(isFinal ? 'fail' : 'stop');
      return isFinal ? 'settled' : 'needs_attention';
    },
    ...overrides,
  };
  return { activities, calls, transmittedAt };
}

const INPUT: SendMessageInput = { messageId: 'msg_1', gatesInTransmission: true };

async function start(taskQueue: string, input: SendMessageInput = INPUT) {
  return environment.temporal.client.workflow.start(SEND_MESSAGE, {
    taskQueue,
    workflowId: `send/${randomUUID()}`,
    args: [input],
  });
}

type Handle = Awaited<ReturnType<typeof start>>;

/** What the Temporal UI shows as current details. */
async function detailsOf(handle: Handle): Promise<string> {
  const metadata = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
  return metadata.currentDetails ?? '';
}

async function stageOf(handle: Handle): Promise<unknown> {
  const { searchAttributes } = await handle.describe();
  return searchAttributes.Stage?.[0];
}

describe('sendMessage', () => {
  test('transmits with at most 11 events', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['settled']);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await handle.result();
      const { events } = await handle.fetchHistory();
      expect(events?.length).toBeLessThanOrEqual(11);
    });
    expect(calls).toEqual(['transmit']);
  });

  test('records after a transmission whose results could not be recorded', async () => {
    const queue = randomUUID();
    const { activities, calls, transmittedAt } = relay(['deferred', 'settled']);
    const { transmitMessage } = activities;
    activities.transmitMessage = async (input) => {
      if (transmittedAt.length > 0) return transmitMessage(input);
      calls.push('transmit');
      transmittedAt.push(await environment.temporal.currentTimeMs());
      return undefined;
    };
    await environment.withWorker(queue, activities, async () => (await start(queue)).result());
    expect(calls).toEqual(['transmit', 'record', 'transmit']);
    // Not immediately, as after a failed activity.
    expect((transmittedAt[1] ?? 0) - (transmittedAt[0] ?? 0)).toBeGreaterThanOrEqual(SEND_RETRY_DELAYS_MS[0]);
  });

  test('ends without transmitting when the send gate refuses the message', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['settled'], { transmitMessage: async () => 'finished' });
    await environment.withWorker(queue, activities, async () => (await start(queue)).result());
    expect(calls).toEqual([]);
  });

  test('fails while the account is suspended, so that the same id can be started after reinstatement', async () => {
    const queue = randomUUID();
    const results = ['held', STATES.settled] as const;
    let starts = 0;
    const { activities } = relay(['settled'], {
      transmitMessage: async () => results[starts++] ?? 'finished',
    });
    await environment.withWorker(queue, activities, async () => {
      const options = {
        taskQueue: queue,
        workflowId: `send/${randomUUID()}`,
        args: [INPUT],
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
      };
      const { workflow } = environment.temporal.client;
      await expect(workflow.execute(SEND_MESSAGE, options)).rejects.toMatchObject({
        cause: { type: HELD_FAILURE },
      });
      await expect(workflow.execute(SEND_MESSAGE, options)).resolves.toBe('sent');
    });
  });

  test('counts failed runs by the type of their failure, so that held ones can be told apart', async () => {
    const queue = randomUUID();
    const { workflowFailures } = createServiceMetrics();
    const sinks = runEndSinks({ tracing: undefined, failures: workflowFailures });
    const results = ['held', 'finished'] as const;
    let starts = 0;
    const { activities } = relay(['settled'], {
      transmitMessage: async () => results[starts++] ?? 'finished',
    });
    const runs = async () => {
      await expect((await start(queue)).result()).rejects.toThrow();
      await (await start(queue)).result();
      const canceled = await environment.temporal.client.workflow.start(TRACK_DELIVERY, {
        taskQueue: queue,
        workflowId: randomUUID(),
        args: [{ messageId: 'msg_1', openRecipients: 1 }],
      });
      await canceled.cancel();
      await expect(canceled.result()).rejects.toThrow();
    };
    await environment.withWorker(queue, activities, runs, { sinks });
    const { values } = await workflowFailures.get();
    expect(values).toEqual([
      { labels: { workflow_type: SEND_MESSAGE, failure_type: HELD_FAILURE }, value: 1 },
    ]);
  });

  test('retries a deferred message with growing delays', async () => {
    const queue = randomUUID();
    const { activities, transmittedAt } = relay(['deferred', 'deferred', 'deferred', 'settled']);
    await environment.withWorker(queue, activities, async () => (await start(queue)).result());
    const delays = transmittedAt.slice(1).map((at, index) => at - (transmittedAt[index] ?? 0));
    expect(delays).toHaveLength(3);
    delays.forEach((pause, index) => {
      const planned = SEND_RETRY_DELAYS_MS[index] ?? 0;
      expect(pause).toBeGreaterThanOrEqual(planned);
      expect(pause).toBeLessThan(planned + 10_000);
    });
  });

  test('retries immediately on retryNow', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['deferred', 'settled']);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(calls).toContain('transmit'));
      await handle.signal(RETRY_SEND_NOW);
      await handle.result();
    });
    expect(calls).toEqual(['transmit', 'transmit']);
  });

  test('ends a deferred message on cancel', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['deferred']);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(calls).toContain('transmit'));
      await handle.signal(CANCEL_SEND);
      await handle.result();
    });
    expect(calls).toEqual(['transmit', 'cancel']);
  });

  test.each([
    { by: 'the signal', cancel: (handle: Handle) => handle.signal(CANCEL_SEND), expected: ['cancel'] },
    { by: 'an ended run', cancel: (handle: Handle) => handle.cancel(), expected: ['record', 'cancel'] },
  ])(
    'cancels a message by $by while the gate runs, although the gate holds it',
    async ({ cancel, expected }) => {
      const queue = randomUUID();
      const gate = holdingAttempt();
      const { activities, calls } = relay(['settled'], { transmitMessage: gate.run });
      const run = async () => {
        const handle = await start(queue);
        await cancelDuringAttempt(handle, gate, () => cancel(handle));
      };
      await environment.withWorker(queue, activities, run, { signalsWhileExecuting: true });
      expect(calls).toEqual(expected);
    },
  );

  test('ends as failed when no message can be built from the stored data', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['settled'], {
      async transmitMessage() {
        throw ApplicationFailure.nonRetryable(
          'A file of the message is missing from storage.',
          UNSENDABLE_FAILURE,
        );
      },
    });
    await environment.withWorker(queue, activities, async () => (await start(queue)).result());
    expect(calls).toEqual(['fail']);
  });

  test.each([
    { signal: RETRY_SEND_NOW, next: ['transmit'] },
    { signal: CANCEL_SEND, next: ['cancel'] },
  ])('stops after a defect and waits without a time limit for $signal', async ({ signal, next }) => {
    const queue = randomUUID();
    let isBroken = true;
    const { activities, calls } = relay(['settled']);
    const { transmitMessage } = activities;
    activities.transmitMessage = async (input) => {
      if (isBroken) throw ApplicationFailure.nonRetryable('x is not a function', 'TypeError');
      return transmitMessage(input);
    };
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(async () => expect(await stageOf(handle)).toBe('needs_attention'));
      await environment.temporal.sleep('60 days');
      expect(calls).toEqual(['stop']);
      const resolving = handle.executeUpdate(RESOLVE_AMBIGUOUS, { args: ['sent'] });
      await expect(resolving).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
      isBroken = false;
      await handle.signal(signal);
      await handle.result();
    });
    expect(calls).toEqual(['stop', ...next]);
  });

  test('ends after a defect when a report settles the message', async () => {
    const queue = randomUUID();
    const stops = ['needs_attention', 'needs_attention', 'settled'] as const;
    const { activities, calls } = relay(['settled'], {
      async transmitMessage() {
        throw ApplicationFailure.nonRetryable('x is not a function', 'TypeError');
      },
      async stopSend() {
        calls.push('stop');
        return stops[calls.length - 1] ?? 'settled';
      },
    });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(async () => expect(await stageOf(handle)).toBe('needs_attention'));
      // About one of two recipients.
      await handle.signal(OUTCOME_RECORDED);
      await eventually(() => expect(calls).toHaveLength(2));
      expect(await stageOf(handle)).toBe('needs_attention');
      await handle.signal(OUTCOME_RECORDED);
      await handle.result();
    });
    expect(calls).toEqual(['stop', 'stop', 'stop']);
  });

  test('ends on cancel while a failed transmission waits for its retry', async () => {
    const queue = randomUUID();
    let transmissions = 0;
    const { activities, calls } = relay(['settled'], {
      async transmitMessage() {
        transmissions += 1;
        throw ApplicationFailure.create({
          message: 'Storage is down',
          type: 'StorageError',
          nextRetryDelay: '10 days',
        });
      },
    });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(transmissions).toBe(1));
      await handle.signal(CANCEL_SEND);
      await handle.result();
    });
    expect([transmissions, calls]).toEqual([1, ['record']]);
  });

  test('never resends an ambiguous message automatically and waits without a time limit', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['needs_attention']);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(async () => expect(await stageOf(handle)).toBe('needs_attention'));
      await environment.temporal.sleep('60 days');
      expect((await handle.describe()).status.name).toBe('RUNNING');
      expect(calls).toEqual(['transmit']);
      await handle.executeUpdate(RESOLVE_AMBIGUOUS, { args: ['sent'] });
      await handle.result();
    });
    expect(calls).toEqual(['transmit', 'resolve:sent']);
  });

  test('transmits the message again immediately on resolveAmbiguous("resend")', async () => {
    const queue = randomUUID();
    const { activities, calls, transmittedAt } = relay(['needs_attention', 'settled']);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(async () => expect(await stageOf(handle)).toBe('needs_attention'));
      await handle.executeUpdate(RESOLVE_AMBIGUOUS, { args: ['resend'] });
      await handle.result();
    });
    expect(calls.filter((call) => call === 'transmit')).toHaveLength(2);
    expect((transmittedAt[1] ?? 0) - (transmittedAt[0] ?? 0)).toBeLessThan(10_000);
  });

  test('is resolved by signal, for one recipient or with a note of what was ignored', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['needs_attention']);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(async () => expect(await stageOf(handle)).toBe('needs_attention'));
      await handle.signal(RESOLVE_AMBIGUOUS, 'maybe');
      await handle.signal(RETRY_SEND_NOW);
      await eventually(async () => expect(await detailsOf(handle)).toMatch(/^Ignored a signal at \d{4}-/));
      const mistaken = handle.executeUpdate(RESOLVE_AMBIGUOUS, {
        args: [{ resolution: 'sent', recipient: 7 }],
      });
      await expect(mistaken).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
      await handle.signal(RESOLVE_AMBIGUOUS, { resolution: 'sent', recipient: 0 });
      expect(await handle.result()).toBe('sent');
      expect((await handle.describe()).memo).toEqual({ outcome: 'sent' });
    });
    expect(calls).toEqual(['transmit', 'resolve:sent:0']);
  });

  test('retries its deferred recipients while another is ambiguous, and shows absolute times', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['both', 'needs_attention']);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(async () => expect(await stageOf(handle)).toBe('needs_attention'));
      expect(await detailsOf(handle)).toMatch(
        /^Since \d{4}-[^ ]+Z, the outcome for recipient 0 is unknown: .* Message-ID msg_1@…, .* `"sent"` or .* Next attempt at \d{4}-[^ ]+Z\./,
      );
      await environment.temporal.sleep('1 minute');
      await eventually(() => expect(calls.filter((call) => call === 'transmit')).toHaveLength(2));
      await handle.signal(RESOLVE_AMBIGUOUS, 'sent');
      await handle.result();
    });
    expect(calls).toEqual(['transmit', 'transmit', 'resolve:sent']);
  });

  test('cancels the deferred recipients and keeps waiting for the ambiguous one', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['both'], {
      async cancelMessage() {
        calls.push('cancel');
        return STATES.needs_attention;
      },
    });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(async () => expect(await stageOf(handle)).toBe('needs_attention'));
      await handle.signal(CANCEL_SEND);
      await eventually(() => expect(calls).toContain('cancel'));
      await environment.temporal.sleep('60 days');
      expect((await handle.describe()).status.name).toBe('RUNNING');
      await handle.signal(RESOLVE_AMBIGUOUS, 'sent');
      await handle.result();
    });
    expect(calls).toEqual(['transmit', 'cancel', 'resolve:sent']);
  });

  test('stops waiting with an ambiguous message when an outcome is reported', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['needs_attention', 'settled']);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(async () => expect(await stageOf(handle)).toBe('needs_attention'));
      await handle.signal(OUTCOME_RECORDED);
      await handle.result();
    });
    expect(calls).toEqual(['transmit', 'record']);
  });

  test('rejects resolveAmbiguous when the message is not ambiguous', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['deferred']);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(calls).toContain('transmit'));
      await expect(handle.executeUpdate(RESOLVE_AMBIGUOUS, { args: ['sent'] })).rejects.toBeInstanceOf(
        WorkflowUpdateFailedError,
      );
      await handle.signal(CANCEL_SEND);
      await handle.result();
    });
  });

  test('records finished attempts and cancels the rest when an operator cancels the run', async () => {
    const queue = randomUUID();
    const { activities, calls } = relay(['deferred']);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(calls).toContain('transmit'));
      await handle.cancel();
      await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
    });
    expect(calls).toEqual(['transmit', 'record', 'cancel']);
  });
});

describe('sendMessage in a run of an older version, which prepares the send in a step of its own', () => {
  const OLDER: SendMessageInput = { messageId: 'msg_1' };

  test('transmits after the step, and not at all if the send is refused', async () => {
    const queue = randomUUID();
    const prepared = ['proceed', 'finished'] as const;
    let steps = 0;
    const { activities, calls } = relay(['settled'], {
      prepareSend: async () => prepared[steps++] ?? 'held',
    });
    await environment.withWorker(queue, activities, async () => {
      await expect((await start(queue, OLDER)).result()).resolves.toBe('sent');
      await expect((await start(queue, OLDER)).result()).resolves.toContain('not sent');
      await expect((await start(queue, OLDER)).result()).rejects.toMatchObject({
        cause: { type: HELD_FAILURE },
      });
    });
    expect(calls).toEqual(['transmit']);
  });

  test('waits for the database with timers, so that a worker can end meanwhile', async () => {
    const queue = randomUUID();
    let attempts = 0;
    const { activities } = relay(['settled'], {
      async prepareSend() {
        attempts += 1;
        if (attempts < 4) throw new Error('The database does not respond.');
        return 'proceed';
      },
    });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue, OLDER);
      await expect(handle.result()).resolves.toBe('sent');
      const { events } = await handle.fetchHistory();
      expect(events?.filter((event) => event.timerStartedEventAttributes)).toHaveLength(2);
    });
  });

  test.each([1, 4])('stops after a defect of its first step, also at attempt %i', async (last) => {
    const queue = randomUUID();
    let attempts = 0;
    const { activities, calls } = relay(['settled'], {
      async prepareSend() {
        attempts += 1;
        if (attempts > last) return 'proceed';
        throw ApplicationFailure.create({
          message: 'A defect.',
          type: 'TypeError',
          nonRetryable: attempts === last,
        });
      },
      // Nothing is ambiguous.
      resolveAmbiguity: async () => ({ status: 'needs_attention', hasUnsent: true, ambiguous: [] }),
    });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue, OLDER);
      await eventually(async () => expect(await detailsOf(handle)).toContain('TypeError: A defect.'), 20_000);
      expect(await stageOf(handle)).toBe('needs_attention');
      await handle.signal(RESOLVE_AMBIGUOUS, 'sent');
      await eventually(async () =>
        expect(await detailsOf(handle)).toMatch(/TypeError: A defect\..*settles nothing by itself/),
      );
      await handle.signal(RETRY_SEND_NOW);
      await expect(handle.result()).resolves.toBe('sent');
    });
    expect(calls).toEqual(['stop', 'transmit']);
  });
});
