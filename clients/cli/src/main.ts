#!/usr/bin/env node
import { EXIT } from './cli-error.ts';
import { locksReleased } from './profiles/lock.ts';
import { run } from './run.ts';

// A reader that has seen enough, such as `head -1`, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? 0 : EXIT.api),
);
process.stderr.on('error', () => undefined);

for (const [signal, exitCode] of [
  ['SIGINT', EXIT.interrupted],
  ['SIGTERM', 143],
] as const)
  process.once(signal, () => {
    locksReleased().finally(() => process.exit(exitCode));
    // The person insists.
    process.once(signal, () => process.exit(exitCode));
  });

const { stdin, stdout, stderr, env } = process;
const exitCode = await run(process.argv.slice(2), { stdin, stdout, stderr, env });
await locksReleased();
// What is written to a pipe may not have left yet.
await Promise.all([stdout, stderr].map((stream) => new Promise((done) => stream.write('', done))));
process.exit(exitCode);
