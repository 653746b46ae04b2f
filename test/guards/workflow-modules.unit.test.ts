import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { listSourceFiles } from './import-graph.ts';

/** A variable, or an object with state, of a module. Objects and arrays are frozen by the SDK. */
const STATE = /^(?:export )?(?:(?:let|var) |const [^=]+= new )/m;

// The runs of a worker share the modules (`workers/workflow-bundle.ts`): what one run changed, the next would find, and a
// replay would take another course.
test('modules of workflows keep no state', () => {
  expect(STATE.test('const a = 1;\nlet count = 0;\n')).toBe(true);
  expect(STATE.test('export const seen: Set<string> = new Set();\n')).toBe(true);
  expect(STATE.test('function f() {\n  let count = 0;\n}\n')).toBe(false);
  const files = listSourceFiles(['workflows']);
  expect(files.length).toBeGreaterThan(50);
  expect(files.filter((file) => STATE.test(readFileSync(file, 'utf8')))).toEqual([]);
});
