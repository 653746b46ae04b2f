import { execFile } from 'node:child_process';
import { promisify, stripVTControlCharacters } from 'node:util';

const SUITE = 'node_modules/@modelcontextprotocol/conformance/dist/index.js';
const SCENARIO_TIMEOUT_MS = 30_000;

export interface ConformanceRun {
  /** Ids of checks, in the order of the suite; a scenario may make one several times. */
  passed: string[];
  failed: string[];
}

/** Runs one scenario of the official suite at a revision, in a process of its own. */
export async function runScenario(url: string, scenario: string, revision: string): Promise<ConformanceRun> {
  const args = [SUITE, 'server', '--url', url, '--scenario', scenario, '--spec-version', revision];
  const options = { timeout: 2 * SCENARIO_TIMEOUT_MS, maxBuffer: 10_000_000 };
  // It exits with 1 if a check fails.
  const { stdout } = await promisify(execFile)(process.execPath, args, options).catch(
    (error: { stdout?: string; stderr?: string }) => ({ stdout: `${error.stdout}${error.stderr}` }),
  );
  const checks = [
    ...stripVTControlCharacters(stdout).matchAll(/ \[([\w-]+) *\] (SUCCESS|FAILURE|WARNING)\b/g),
  ];
  if (checks.length === 0) throw new Error(`The suite made no check:\n${stdout}`);
  const idsOf = (...states: string[]) =>
    checks.filter(([, , state = '']) => states.includes(state)).map(([, id = '']) => id);
  return { passed: idsOf('SUCCESS'), failed: idsOf('FAILURE', 'WARNING') };
}
