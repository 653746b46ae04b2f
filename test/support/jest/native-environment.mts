import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { ModernFakeTimers } = require('@jest/fake-timers') as typeof import('@jest/fake-timers');
const { ModuleMocker } = require('jest-mock') as typeof import('jest-mock');

type ProjectConfig = ConstructorParameters<typeof import('jest-runtime')['default']>[0];

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

  exportConditions(): string[] {
    return ['node', 'node-addons'];
  }

  getVmContext(): null {
    return null;
  }
}
