import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { Worker } from '@temporalio/worker';
import { loadWorkflowBundle } from '../../workers/workflow-bundle.ts';
import * as workflows from '../../workflows/index.ts';
import { quietTemporal } from '../support/workflow-environment.ts';

quietTemporal();

const FOLDER = fileURLToPath(new URL('./histories', import.meta.url));
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
const histories = files.map((name) => ({
  name,
  history: JSON.parse(readFileSync(`${FOLDER}/${name}`, 'utf8')),
}));

const typeOf = ({ history }: (typeof histories)[number]): string =>
  history.events[0].workflowExecutionStartedEventAttributes.workflowType.name;

describe('replay', () => {
  test('every workflow type has a recorded history', () => {
    expect(new Set(histories.map(typeOf))).toEqual(new Set(Object.keys(workflows)));
  });

  test.each(histories)('$name replays without a nondeterminism error', async ({ history }) => {
    const workflowBundle = await loadWorkflowBundle();
    await expect(Worker.runReplayHistory({ workflowBundle }, history)).resolves.toBeUndefined();
  });
});
