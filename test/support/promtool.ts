import { spawnSync } from 'node:child_process';

/** Why the tests with a real Prometheus cannot run; null if they can. */
export function findPromtoolObstacle(): string | null {
  const { status } = spawnSync('promtool', ['--version']);
  return status === 0 ? null : 'promtool is not installed (apt-get install prometheus)';
}

/** Runs Prometheus's tool. @returns its output, and whether it succeeded. */
export function runPromtool(args: string[]): { ok: boolean; output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  return { ok: status === 0, output: `${stdout}${stderr}` };
}
