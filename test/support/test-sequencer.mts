import { createRequire } from 'node:module';

// Its types describe the CommonJS module, whose default export `import` resolves.
const { default: Sequencer } = createRequire(import.meta.url)(
  '@jest/test-sequencer',
) as typeof import('@jest/test-sequencer');

type Tests = Parameters<InstanceType<typeof Sequencer>['sort']>[0];
type Test = Tests[number];

/**
 * Files that mostly wait (for a killed worker's activities to time out, for timers of the service, for answers that take
 * equally long), with their seconds. They fill the lanes of half of the Jest workers, rounded up, while the others use the
 * processors. An estimate that is wrong costs time, nothing else.
 */
const WAITING_SECONDS: Record<string, number> = {
  'e2e/failing-endpoint.e2e': 115,
  'e2e/webhook-crash.e2e': 110,
  'e2e/purge.e2e': 85,
  'e2e/restore.e2e': 85,
  'e2e/half-killed.e2e': 75,
  'e2e/retention.e2e': 75,
  'e2e/crash.e2e': 70,
  'e2e/export.e2e': 60,
  'clients/python.e2e': 60,
  'dev/start.e2e': 55,
  'people/accounts.api': 43,
  'mail-transport/smtp-transport.unit': 40,
  'clients/cli.e2e': 40,
  'e2e/flood.e2e': 35,
  'e2e/monitoring.e2e': 35,
  'e2e/postfix.e2e': 30,
  'events/event-stream.api': 30,
  'e2e/recipes-python.e2e': 28,
  'mcp/waits.api': 27,
  'e2e/recipes-typescript.e2e': 26,
  'dev/compose-start.e2e': 25,
  'clients/typescript.e2e': 22,
  'e2e/recipes.e2e': 20,
  'e2e/mcp-recipes.e2e': 20,
  'e2e/hostile-receivers.e2e': 18,
  'workflows/apply-retention.workflow': 15,
  'workflows/probe-endpoint.workflow': 10,
};
/** Files that take much longer than the others. Started last, one would keep a single processor busy at the end. */
const LONG_SECONDS: Record<string, number> = {
  'guards/linear-time.unit': 100,
  'clients/python.unit': 60,
  'guards/tenant-matrix.api': 35,
  'api/fuzz.api': 35,
  'docs/site-browser.api': 30,
  'people/limited-actions.api': 25,
  'exports/export-runner.api': 25,
  'people/invitations.api': 25,
  'mime/quotes.unit': 20,
};
const DEFAULT_SECONDS = 3;

/**
 * Orders the files so that waiting and computing ones run side by side, and long ones do not come last: simulates half
 * of the workers for the waiting files and the others for the rest, and starts the files in that order.
 */
export default class TestSequencer extends Sequencer {
  private readonly workers: number;

  constructor(options: ConstructorParameters<typeof Sequencer>[0]) {
    super(options);
    this.workers = Math.max(2, options.globalConfig.maxWorkers);
  }

  override async sort(tests: Tests): Promise<Tests> {
    const sorted = await super.sort(tests);
    const isWaiting = (test: Test) => nameOf(test) in WAITING_SECONDS;
    const longestFirst = (queue: Tests) => queue.toSorted((a, b) => secondsOf(b) - secondsOf(a));
    const waiting = Math.ceil(this.workers / 2);
    const lanes: { queue: Tests; workers: number }[] = [
      { queue: longestFirst(sorted.filter(isWaiting)), workers: waiting },
      { queue: longestFirst(sorted.filter((test) => !isWaiting(test))), workers: this.workers - waiting },
    ];
    const starts = lanes.flatMap(({ queue, workers }) => {
      const freeAt = Array.from({ length: workers }, () => 0);
      return queue.map((test) => {
        const worker = freeAt.indexOf(Math.min(...freeAt));
        const at = freeAt[worker] ?? 0;
        freeAt[worker] = at + secondsOf(test);
        return { test, at };
      });
    });
    return starts.sort((a, b) => a.at - b.at).map(({ test }) => test);
  }
}

const nameOf = ({ path }: Test): string => /test\/(.*)\.test\.ts$/.exec(path)?.[1] ?? '';
const secondsOf = (test: Test): number =>
  WAITING_SECONDS[nameOf(test)] ?? LONG_SECONDS[nameOf(test)] ?? DEFAULT_SECONDS;
