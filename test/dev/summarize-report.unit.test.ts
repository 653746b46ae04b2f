import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';

/** What the last step of `.ci/run` prints about a report. */
function summarize(report: object): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'jest-report-'));
  const file = join(folder, 'jest.json');
  try {
    writeFileSync(file, JSON.stringify(report));
    return execFileSync(process.execPath, ['.ci/summarize.cjs', file], { encoding: 'utf8' })
      .trim()
      .split('\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const result = (status: string, fullName: string, ...failureMessages: string[]) => ({
  status,
  fullName,
  failureMessages,
});

test('CI ends with a line for each skipped and failed test and each file that did not load, and the totals', () => {
  const lines = summarize({
    numPassedTests: 1,
    numFailedTests: 2,
    numRuntimeErrorTestSuites: 1,
    numPendingTests: 1,
    numTodoTests: 0,
    testResults: [
      {
        name: resolve('test/a.unit.test.ts'),
        message: '  ● a group › breaks\n\n    something',
        assertionResults: [
          result('passed', 'a group works'),
          result('pending', 'a group waits'),
          result('failed', 'a group breaks', '\u001b[2mError\u001b[22m: first line\nsecond line'),
          result('failed', 'a group hangs', '\n  thrown: "Exceeded timeout"'),
        ],
      },
      {
        name: resolve('test/b.unit.test.ts'),
        message: "  ● Test suite failed to run\n\n    Cannot find module './none.ts'\n      at x",
        assertionResults: [],
      },
    ],
  });
  expect(lines).toEqual([
    'skipped: a group waits (test/a.unit.test.ts)',
    "failed: test/b.unit.test.ts: Cannot find module './none.ts'",
    'failed: a group hangs (test/a.unit.test.ts): thrown: "Exceeded timeout"',
    'failed: a group breaks (test/a.unit.test.ts): Error: first line',
    '1 passed, 3 failed, 1 skipped',
  ]);
});
