import { describe, expect, test } from '@jest/globals';
import type { ConnectionLike, WorkflowSignalInput } from '@temporalio/client';
import { waitsForRest } from '../support/run-at-rest.ts';

const TASK = { event: { workflowTaskStartedEventAttributes: {} }, pendingActivities: [], isAtRest: false };
const ACTIVITY = {
  event: { activityTaskScheduledEventAttributes: {} },
  pendingActivities: [{ lastStartedTime: { seconds: 1 } }],
  isAtRest: false,
};
const BACKOFF = {
  event: { activityTaskScheduledEventAttributes: {} },
  pendingActivities: [{ lastStartedTime: { seconds: 1 }, lastAttemptCompleteTime: { seconds: 2 } }],
  isAtRest: true,
};
const TIMER = { event: { timerStartedEventAttributes: {} }, pendingActivities: [], isAtRest: true };
type State = typeof TASK | typeof ACTIVITY | typeof BACKOFF | typeof TIMER;

/** Signals a run that is in one of `states` for so many requests to Temporal, and in the last one for ever. */
async function signal(states: ReadonlyArray<readonly [State, number]>): Promise<State> {
  const requests = states.flatMap(([state, count], index) =>
    Array.from({ length: count }, () => ({ state, eventId: index + 1 })),
  );
  let now = { state: states[0]?.[0] ?? TIMER, eventId: 1 };
  const next = () => {
    now = requests.shift() ?? { state: states.at(-1)?.[0] ?? TIMER, eventId: states.length };
    return now;
  };
  const connection = {
    workflowService: {
      async describeWorkflowExecution() {
        return { pendingActivities: next().state.pendingActivities };
      },
      async getWorkflowExecutionHistory() {
        const { state, eventId } = next();
        return { history: { events: [{ eventId, ...state.event }] } };
      },
    },
  } as unknown as ConnectionLike;
  const interceptor = waitsForRest(
    () => connection,
    () => true,
  );
  let signaled: State | undefined;
  await interceptor.signal?.(
    { workflowExecution: { workflowId: 'run' } } as WorkflowSignalInput,
    async () => {
      signaled = now.state;
    },
  );
  if (!signaled) throw new Error('The signal was not sent.');
  return signaled;
}

describe('a signal of a test waits until the run is at rest', () => {
  test.each([[TIMER], [BACKOFF]])('and is sent at once to a run that is: %j', async (state) => {
    await expect(signal([[state, 1]])).resolves.toBe(state);
  });

  test('wherever the run changes between the requests', async () => {
    const counts = Array.from({ length: 8 }, (_, count) => count);
    const cases = counts.flatMap((task) =>
      counts.flatMap((activity) =>
        [TIMER, BACKOFF].map((rest) =>
          signal([
            [TASK, task],
            [ACTIVITY, activity],
            [TASK, 2],
            [rest, 1],
          ]),
        ),
      ),
    );
    for (const state of await Promise.all(cases)) expect(state).toMatchObject({ isAtRest: true });
  });
});
