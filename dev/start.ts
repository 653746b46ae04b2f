import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { type DataFolder, FIRST_RUN_FILE, openDataFolder } from './data-folder.ts';
import { closingTable, describeFirstRun } from './first-run.ts';
import { type Dependencies, type StartedDependency, startDependencies } from './dependencies.ts';
import { describeServices, serviceEnvironments, superviseService } from './services.ts';
import { type DevSettings, readDevSettings, requiredPorts } from './settings.ts';
import { assertPortsFree } from './stack/ports.ts';
import { startConcurrently } from './stack/start-concurrently.ts';

const USAGE = `npm start -- [--reset] [--parts]
  --reset   forget all data first
  --parts   only what the service needs around it: PostgreSQL, S3, Temporal, mail relay; not API and workers
`;

/** Ends in reverse: who uses the others goes first, so that its last work still finds them. */
class RunningStack {
  readonly #services: StartedDependency[] = [];
  readonly #relay: StartedDependency[] = [];
  readonly #parts: StartedDependency[] = [];
  readonly #ended = Promise.withResolvers<string>();

  addService(part: StartedDependency): void {
    this.#services.push(part);
  }

  addPart(part: StartedDependency): void {
    (part.name === 'Mail relay' ? this.#relay : this.#parts).push(part);
    void part.exited?.then((reason) => this.#ended.resolve(`${part.name} ${reason}`));
  }

  /** Settles with the reason when a part the rest cannot do without has died. */
  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  async stop(): Promise<void> {
    for (const group of [this.#services, this.#relay, this.#parts]) {
      const outcomes = await Promise.allSettled(group.map((part) => part.stop()));
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') print(`While stopping: ${outcome.reason}`);
    }
  }
}

interface StartOptions {
  settings: DevSettings;
  folder: DataFolder;
  stack: RunningStack;
  signal: AbortSignal;
  partsOnly: boolean;
}

async function start({ settings, folder, stack, signal, partsOnly }: StartOptions): Promise<void> {
  const startedAt = Date.now();
  const log = (line: string) =>
    print(`${((Date.now() - startedAt) / 1000).toFixed(1).padStart(5)} s  ${line}`);
  await assertPortsFree(requiredPorts(settings));
  const parts = await startDependencies({
    settings,
    folder,
    log,
    signal,
    started: (part) => stack.addPart(part),
  });
  const environments = serviceEnvironments(
    settings,
    { ...folder.secrets(), dkimKeyFile: folder.dkimKeyFile() },
    parts,
  );
  const apiFile = folder.writePrivate('api.env', environmentFile(environments.api));
  const workerFile = folder.writePrivate('worker.env', environmentFile(environments.worker));
  if (partsOnly) {
    print(`\nThe parts are up. To run the service on them:\n`);
    print(`  npx node --env-file=${relative('.', apiFile)} api/server.ts`);
    print(`  npx node --env-file=${relative('.', workerFile)} workers/all.ts\n`);
    return;
  }
  log('Starting the API and the workers');
  const services = describeServices(settings, environments);
  await startConcurrently(
    signal,
    services.map((service) => async (linked: AbortSignal) => {
      stack.addService(await superviseService(service, { folder, log, signal: linked }));
    }),
  );
  announce(settings, folder, parts);
}

function announce(settings: DevSettings, folder: DataFolder, parts: Dependencies): void {
  const facts = describeFirstRun(settings, parts);
  const firstRun = folder.writePrivate(FIRST_RUN_FILE, `${JSON.stringify(facts, null, 2)}\n`);
  const logs = join(settings.dataDir, 'logs');
  print(closingTable(facts, { firstRun: relative('.', firstRun), logs: relative('.', logs) }));
}

function environmentFile(environment: Record<string, string>): string {
  return Object.entries(environment)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Resolves with the first signal that asks this process to end; a second one ends it at once, children included. */
function untilSignal(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(signal, () => {
        if (asked && signal !== 'SIGHUP') process.exit(1);
        asked = true;
        resolve(signal);
      });
  });
}

/** Starts, stays until a signal comes or a part dies, and stops what has been started by then. */
async function run(settings: DevSettings, folder: DataFolder, partsOnly: boolean): Promise<void> {
  const stack = new RunningStack();
  const givingUp = new AbortController();
  const starting = start({ settings, folder, stack, signal: givingUp.signal, partsOnly });
  const asked = untilSignal().then((signal) => {
    print(`\nStopping (${signal})`);
    givingUp.abort(new Error('Stopped while starting'));
  });
  const broken = starting
    .then(() => stack.ended)
    .then((reason) => {
      throw new Error(`${reason}. See ${join(settings.dataDir, 'logs')}.`);
    });
  try {
    await Promise.race([asked, broken]);
  } finally {
    folder.writePrivate(FIRST_RUN_FILE, null);
    // A start that was given up fails, which is no news; it has to be over before its parts are stopped.
    await starting.catch(() => undefined);
    broken.catch(() => undefined);
    await stack.stop();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      reset: { type: 'boolean', default: false },
      parts: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return print(USAGE);
  const settings = readDevSettings(process.env);
  const folder = await openDataFolder(settings.dataDir, { reset: values.reset, log: print });
  try {
    await run(settings, folder, values.parts);
  } finally {
    folder.release();
  }
  print('Everything is stopped.');
}

// A terminal that is gone takes no more lines; the stop it caused goes on.
process.stdout.on('error', () => undefined);
main().catch((error: unknown) => {
  process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
