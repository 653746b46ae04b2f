import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildProgram } from '../../clients/cli/build.ts';

export interface CommandResult {
  exitCode: number | null;
  stdout: string;
  stderr: string;
  /** Standard output as JSON. */
  readonly json: never;
}

export interface RunningCommand {
  child: ChildProcess;
  /** So far. */
  stdout(): string;
  stderr(): string;
  ended: Promise<CommandResult>;
}

export interface CommandOptions {
  env?: NodeJS.ProcessEnv;
  /** Standard input, which then ends. Default: none. */
  input?: string;
}

/** The built CLI, with a home of its own. */
export class CommandLine implements AsyncDisposable {
  /** Has `config`, where profiles are. */
  readonly home: string;
  readonly program: string;
  readonly #running = new Set<ChildProcess>();

  private constructor(home: string, program: string) {
    this.home = home;
    this.program = program;
  }

  static async build(): Promise<CommandLine> {
    const home = mkdtempSync(join(tmpdir(), 'agent-email-cli-'));
    return new CommandLine(home, await buildProgram(join(home, 'program')));
  }

  get environment(): NodeJS.ProcessEnv {
    return { PATH: process.env.PATH, HOME: this.home, XDG_CONFIG_HOME: join(this.home, 'config') };
  }

  get profiles(): string {
    return join(this.home, 'config/agent-email/profiles.json');
  }

  start(parameters: readonly string[], { env = {}, input }: CommandOptions = {}): RunningCommand {
    const child = spawn(process.execPath, [this.program, ...parameters], {
      env: { ...this.environment, ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    this.#running.add(child);
    child.stdin?.end(input);
    let [stdout, stderr] = ['', ''];
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const ended = new Promise<CommandResult>((resolve) =>
      child.once('close', (exitCode) => {
        this.#running.delete(child);
        resolve({
          exitCode,
          stdout,
          stderr,
          get json() {
            if (stdout === '') throw new Error(`It printed nothing and ended with ${exitCode}: ${stderr}`);
            return JSON.parse(stdout) as never;
          },
        });
      }),
    );
    return { child, stdout: () => stdout, stderr: () => stderr, ended };
  }

  run(parameters: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
    return this.start(parameters, options).ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#running) child.kill('SIGKILL');
    rmSync(this.home, { recursive: true, force: true });
  }
}
