import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Recorded by the code of this version. `npm run histories:record` writes them. */
export const CURRENT = join(import.meta.dirname, 'histories');
/** Recorded before a change of this version: one folder for each change, named after what was different. */
export const EARLIER = join(CURRENT, 'earlier');
/** One folder per released version, which `npm run histories:release` writes. */
export const RELEASED = join(CURRENT, 'released');
export const SERVED_FILE = 'served.json';

/** What the workers of a version serve. */
export interface Served {
  workflowTypes: string[];
  taskQueues: string[];
}

export interface RecordedHistory {
  name: string;
  history: { events: Record<string, unknown>[] };
}

/** Histories in each folder of {@link EARLIER}; the folder precedes their names. */
export const readEarlierHistories = (): RecordedHistory[] =>
  readdirSync(EARLIER).flatMap((folder) =>
    readHistories(join(EARLIER, folder)).map(({ name, history }) => ({ name: `${folder}/${name}`, history })),
  );

/** Names of the released versions that have a folder. */
export const listReleases = (): string[] =>
  existsSync(RELEASED) ? readdirSync(RELEASED).toSorted(byVersion) : [];

export function readHistories(folder: string): RecordedHistory[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json') && name !== SERVED_FILE)
    .map((name) => ({ name, history: JSON.parse(readFileSync(join(folder, name), 'utf8')) }));
}

export const readServed = (version: string): Served =>
  JSON.parse(readFileSync(join(RELEASED, version, SERVED_FILE), 'utf8'));

/** Versions that the changelog calls released: their heading has no note. */
export function findReleasedVersions(changelog: string): string[] {
  return [...changelog.matchAll(/^## (\d+\.\d+\.\d+)$/gm)]
    .map(([, version = '']) => version)
    .toSorted(byVersion);
}

function byVersion(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

/** What a version no longer serves of what the version before it served. */
export function findRemoved(before: Served, now: Served): string[] {
  return [
    ...before.workflowTypes.filter((name) => !now.workflowTypes.includes(name)),
    ...before.taskQueues.filter((name) => !now.taskQueues.includes(name)),
  ];
}
