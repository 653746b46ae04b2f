import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Worker } from '@temporalio/worker';
import { loadWorkflowBundle } from '../../workers/workflow-bundle.ts';
import * as workflows from '../../workflows/index.ts';
import { TASK_QUEUES } from '../../workflows/task-queues.contract.ts';
import { quietTemporal } from '../support/workflow-environment.ts';
import {
  CURRENT,
  findReleasedVersions,
  findRemoved,
  listReleases,
  RELEASED,
  type RecordedHistory,
  readEarlierHistories,
  readHistories,
  readServed,
} from './history-sets.ts';

quietTemporal();

const releases = listReleases();
const histories = [
  ...readHistories(CURRENT),
  ...readEarlierHistories(),
  ...releases.flatMap((version) =>
    readHistories(join(RELEASED, version)).map(({ name, history }) => ({
      name: `${version}/${name}`,
      history,
    })),
  ),
];
const served = { workflowTypes: Object.keys(workflows), taskQueues: [...TASK_QUEUES] };

const typeOf = ({ history }: RecordedHistory): unknown =>
  (history.events[0] as { workflowExecutionStartedEventAttributes: { workflowType: { name: string } } })
    .workflowExecutionStartedEventAttributes.workflowType.name;

describe('replay', () => {
  const errors = new Map<string, Error | undefined>();
  // By one worker: one for each history would load the bundle 60 times.
  beforeAll(async () => {
    const workflowBundle = await loadWorkflowBundle();
    const replayed = histories.map(({ name, history }) => ({ workflowId: name, history }));
    for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, replayed))
      errors.set(workflowId, error);
  }, 120_000);

  test('every workflow type has a history recorded by this version', () => {
    expect(new Set(readHistories(CURRENT).map(typeOf))).toEqual(new Set(served.workflowTypes));
  });

  test.each(histories)('$name replays without a nondeterminism error', ({ name }) => {
    expect(errors.has(name)).toBe(true);
    expect(errors.get(name)).toBeUndefined();
  });
});

describe('an upgrade', () => {
  const changelog = readFileSync(resolve(import.meta.dirname, '../../CHANGELOG.md'), 'utf8');

  test('replays the histories of every released version', () => {
    expect(releases).toEqual(findReleasedVersions(changelog));
    expect(findReleasedVersions('# Changelog\n\n## 0.3.0 (unreleased)\n\n## 0.10.0\n\n## 0.2.0\n')).toEqual([
      '0.2.0',
      '0.10.0',
    ]);
  });

  test('still serves the queues and workflow types of the version before', () => {
    const latest = releases.at(-1);
    expect(latest === undefined ? [] : findRemoved(readServed(latest), served)).toEqual([]);
    expect(
      findRemoved(
        { workflowTypes: ['sendMessage', 'sendLetter'], taskQueues: ['mail', 'outbound'] },
        { workflowTypes: ['sendMessage'], taskQueues: ['outbound'] },
      ),
    ).toEqual(['sendLetter', 'mail']);
  });
});
