import { execFile } from 'node:child_process';
import { promisify, stripVTControlCharacters } from 'node:util';

const SUITE = 'node_modules/@modelcontextprotocol/conformance/dist/index.js';

export interface ConformanceRun {
  /** Ids of checks, in the order of the suite, or names of scenarios. */
  passed: string[];
  failed: string[];
}

/** Runs one scenario of the official suite at a revision, in a process of its own. */
export async function runScenario(url: string, scenario: string, revision: string): Promise<ConformanceRun> {
  const report = await run(['--url', url, '--scenario', scenario, '--spec-version', revision], 60_000);
  const checks = [...report.matchAll(/ \[([\w-]+) *\] (SUCCESS|FAILURE|WARNING)\b/g)];
  if (checks.length === 0) throw new Error(`The suite made no check:\n${report}`);
  const idsOf = (...states: string[]) =>
    checks.filter(([, , state = '']) => states.includes(state)).map(([, id = '']) => id);
  return { passed: idsOf('SUCCESS'), failed: idsOf('FAILURE', 'WARNING') };
}

/** Runs what a revision requires of servers. @returns scenarios; those that the revision does not score are left out. */
export async function runRequirements(url: string, revision: string): Promise<ConformanceRun> {
  const report = await run(['--url', url, '--requirements', revision], 240_000);
  const scenariosAt = (pattern: RegExp) => [...report.matchAll(pattern)].map(([, name = '']) => name);
  const notScored = scenariosAt(/✗ ([\w-]+) \((?:extension|pending|added-after-release)\)/g);
  const failed = scenariosAt(/✗ ([\w-]+): /g).filter((name) => !notScored.includes(name));
  return { passed: scenariosAt(/✓ ([\w-]+): [1-9]/g), failed };
}

async function run(args: string[], timeout: number): Promise<string> {
  const options = { timeout, maxBuffer: 10_000_000 };
  // It exits with 1 if a check fails.
  const { stdout } = await promisify(execFile)(process.execPath, [SUITE, 'server', ...args], options).catch(
    (error: { stdout?: string; stderr?: string }) => ({ stdout: `${error.stdout}${error.stderr}` }),
  );
  return stripVTControlCharacters(stdout);
}
