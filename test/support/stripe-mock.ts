import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { acceptsConnections, findFreePort } from '../../dev/stack/ports.ts';
import { eventually } from './eventually.ts';

/** Stripe's own server for tests, which checks requests against the description of its API. `.ci/run` installs it. */
const PATHS = [
  process.env.STRIPE_MOCK_PATH ?? '',
  join(homedir(), '.cache/agent-email/stripe-mock-0.203.0/stripe-mock'),
  join(homedir(), 'go/bin/stripe-mock'),
];

const findStripeMock = (): string | undefined => PATHS.find((path) => path !== '' && existsSync(path));

/** Why it cannot run here. Undefined if it can. */
export function findStripeMockObstacle(): string | undefined {
  return findStripeMock() === undefined
    ? 'stripe-mock is not installed (go install github.com/stripe/stripe-mock@v0.203.0)'
    : undefined;
}

export async function startStripeMock(): Promise<{ url: string; close(): Promise<void> }> {
  const path = findStripeMock();
  if (path === undefined) throw new Error(findStripeMockObstacle());
  const port = await findFreePort();
  const child = spawn(path, ['-http-port', String(port)], { stdio: 'ignore' });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await eventually(async () => {
    if (!(await acceptsConnections(port))) throw new Error('stripe-mock does not answer');
  }, 30_000);
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      child.kill();
      await exited;
    },
  };
}
