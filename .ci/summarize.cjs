// Prints each skipped and failed test of a run on one line, and the totals on the last: `summarize.cjs <Jest's JSON report>`.
const { readFileSync } = require('node:fs');
const { relative } = require('node:path');
const { stripVTControlCharacters } = require('node:util');

const report = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const MAX_CHARACTERS = 300;
const firstLine = (text) => {
  const lines = stripVTControlCharacters(text)
    .split('\n')
    .map((line) => line.trim());
  return (lines.find((line) => line !== '' && !line.startsWith('●')) ?? '').slice(0, MAX_CHARACTERS);
};

// A file that could not be loaded has no tests, but is a failure.
const failed = report.numFailedTests + report.numRuntimeErrorTestSuites;
const skipped = report.numPendingTests + report.numTodoTests;
const lines = report.testResults.flatMap(({ name, message, assertionResults }) => {
  const file = relative('', name);
  const tests = assertionResults.flatMap(({ status, fullName, failureMessages = [] }) => {
    if (status === 'pending' || status === 'todo') return [`skipped: ${fullName} (${file})`];
    if (status === 'failed') return [`failed: ${fullName} (${file}): ${firstLine(failureMessages[0] ?? '')}`];
    return [];
  });
  const isReported = tests.some((line) => line.startsWith('failed: '));
  return message === '' || isReported ? tests : [...tests, `failed: ${file}: ${firstLine(message)}`];
});
const totals = `${report.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
process.stdout.write(`${[...lines.sort().reverse(), totals].join('\n')}\n`);
