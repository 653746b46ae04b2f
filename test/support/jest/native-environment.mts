import { createRequire } from 'node:module';
import { TIME_FACTOR } from '../time-factor.ts';

const require = createRequire(import.meta.url);
const { ModernFakeTimers } = require('@jest/fake-timers') as typeof import('@jest/fake-timers');
const { ModuleMocker } = require('jest-mock') as typeof import('jest-mock');

type ProjectConfig = ConstructorParameters<typeof import('jest-runtime')['default']>[0];

interface Limited {
  timeout?: number;
}

/** Of `jest-circus`. */
type TestEvent =
  | { name: 'run_start' }
  | { name: 'test_start'; test: Limited }
  | { name: 'hook_start'; hook: Limited };

/** Tests run in the worker's own context. After each file, what tests may change in it is restored. */
export default class NativeEnvironment {
  readonly global = globalThis;
  readonly moduleMocker = new ModuleMocker(globalThis);
  readonly fakeTimers = null;
  readonly fakeTimersModern;
  private readonly variables = { ...process.env };
  private readonly directory = process.cwd();
  private readonly exit = process.exit;
  private readonly console = console;
  /** Hooks run several times. */
  private readonly extended = new WeakSet<Limited>();

  constructor({ projectConfig }: { projectConfig: ProjectConfig }) {
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
  }

  async setup(): Promise<void> {}

  async teardown(): Promise<void> {
    this.fakeTimersModern.dispose();
    for (const name of Object.keys(process.env)) if (!(name in this.variables)) delete process.env[name];
    Object.assign(process.env, this.variables);
    process.chdir(this.directory);
    process.exit = this.exit;
    globalThis.console = this.console;
  }

  /** The limits of all tests, and those of single tests and hooks. */
  handleTestEvent(event: TestEvent, state: { testTimeout: number }): void {
    if (event.name === 'run_start') state.testTimeout *= TIME_FACTOR;
    const own =
      event.name === 'test_start' ? event.test : event.name === 'hook_start' ? event.hook : undefined;
    if (!own?.timeout || this.extended.has(own)) return;
    this.extended.add(own);
    own.timeout *= TIME_FACTOR;
  }

  exportConditions(): string[] {
    return ['node', 'node-addons'];
  }

  getVmContext(): null {
    return null;
  }
}
