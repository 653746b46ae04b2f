import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { type DataFolder, FIRST_RUN_FILE, openDataFolder } from './data-folder.ts';
import { type Dependencies, type StartedDependency, startDependencies } from './dependencies.ts';
import { ensureDocuments } from './docs/ensure-documents.ts';
import { closingTable, describeFirstRun } from './first-run.ts';
import { describeServices, serviceEnvironments, superviseService } from './services.ts';
import { type DevSettings, readDevSettings, requiredPorts } from './settings.ts';
import { assertPortsFree } from './stack/ports.ts';
import { startConcurrently } from './stack/start-concurrently.ts';

const USAGE = `npm start -- [--reset] [--parts]
  --reset   delete all data first
  --parts   start only the dependencies (PostgreSQL, S3, Temporal, mail relay), not the API and the workers
`;

/** Stops in reverse order: services before their dependencies, so that they can finish their work. */
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

  /** Resolves with the reason when a dependency exits. */
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
  const documents = ensureDocuments(log, signal);
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
    await documents;
    print(`\nThe parts are up. To run the service on them:\n`);
    print(`  npx node --env-file=${relative('.', apiFile)} api/server.ts`);
    print(`  npx node --env-file=${relative('.', workerFile)} workers/all.ts\n`);
    print('It is then available here:');
    announce(settings, folder, parts, environments.api.METRICS_TOKEN ?? '');
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
  await documents;
  announce(settings, folder, parts, environments.api.METRICS_TOKEN ?? '');
}

function announce(
  settings: DevSettings,
  folder: DataFolder,
  parts: Dependencies,
  metricsToken: string,
): void {
  const facts = describeFirstRun(settings, parts, metricsToken);
  const firstRun = folder.writePrivate(FIRST_RUN_FILE, `${JSON.stringify(facts, null, 2)}\n`);
  const logs = join(settings.dataDir, 'logs');
  print(closingTable(facts, { firstRun: relative('.', firstRun), logs: relative('.', logs) }));
}

/** In the format of Node's `--env-file`. */
function environmentFile(environment: Record<string, string>): string {
  return Object.entries(environment)
    .map(([name, value]) => `${name}=${quote(value)}\n`)
    .join('');
}

function quote(value: string): string {
  const mark = ['"', "'", '`'].find((candidate) => !value.includes(candidate)) ?? '';
  return /[\s#"'`]/.test(value) ? `${mark}${value}${mark}` : value;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Resolves with the first signal that stops this process. A second one kills it immediately, with its children. */
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

/** Starts the stack, waits for a signal or for a dependency to exit, and stops everything that was started. */
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
    // An aborted start rejects, which is expected. It must settle before its dependencies are stopped.
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

// Writing to a closed terminal fails; the stop must continue.
process.stdout.on('error', () => undefined);
main().catch((error: unknown) => {
  process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
