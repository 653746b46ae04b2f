import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { TASK_QUEUES } from '../../workflows/task-queues.contract.ts';
import {
  CURRENT,
  listReleases,
  RELEASED,
  readHistories,
  SERVED_FILE,
  type Served,
} from '../workflows/history-sets.ts';

/**
 * `npm run histories:release`: keeps the recorded histories of this version, which every later version replays, because its
 * workers continue the runs that are open during the upgrade.
 */
const { version } = packageJson;
if (listReleases().includes(version)) throw new Error(`The histories of ${version} are kept already.`);
const folder = join(RELEASED, version);
await mkdir(folder, { recursive: true });
const histories = readHistories(CURRENT);
for (const { name } of histories) await copyFile(join(CURRENT, name), join(folder, name));
const types = histories.map(
  ({ history: { events } }) =>
    (events[0] as { workflowExecutionStartedEventAttributes: { workflowType: { name: string } } })
      .workflowExecutionStartedEventAttributes.workflowType.name,
);
const served: Served = { workflowTypes: [...new Set(types)].toSorted(), taskQueues: [...TASK_QUEUES] };
await writeFile(join(folder, SERVED_FILE), `${JSON.stringify(served, null, 2)}\n`);
console.log(`Kept ${histories.length} histories of ${version}.`);
