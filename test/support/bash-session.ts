import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * A bash that runs scripts one after another, as if a person pasted them: variables and functions stay. It ends with the
 * first command that fails (`set -euo pipefail`). Its folder is its home, so that no configuration of this machine matters.
 */
export class BashSession {
  readonly folder = mkdtempSync(join(tmpdir(), 'agent-email-bash-'));
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<string>;
  #output = '';
  #errors = '';
  #changed = Promise.withResolvers<void>();

  constructor(variables: Record<string, string>) {
    const path = `${dirname(process.execPath)}:${process.env.PATH}`;
    this.#child = spawn('bash', ['--noprofile', '--norc', '-euo', 'pipefail', '-s'], {
      cwd: this.folder,
      env: { PATH: path, HOME: this.folder, LANG: 'C.UTF-8', ...variables },
      // A group of its own, so that what it runs ends with it.
      detached: true,
    });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => this.#add(text));
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text;
    });
    // A script that ends early closes its input.
    this.#child.stdin.on('error', () => undefined);
    this.#ended = new Promise((done) => this.#child.once('close', (code) => done(`bash ended with ${code}`)));
  }

  /**
   * Runs a script and returns what it printed.
   *
   * @throws Error with its output, if a command fails or the script takes longer than `timeoutMs`.
   */
  async run(script: string, timeoutMs = 60_000): Promise<string> {
    const end = `end-${randomUUID()}\n`;
    this.#output = '';
    this.#errors = '';
    this.#child.stdin.write(`${script}\nprintf '%s\\n' ${end}`);
    const late = Promise.withResolvers<string>();
    const timer = setTimeout(() => late.resolve(`The script ran longer than ${timeoutMs} ms`), timeoutMs);
    try {
      while (!this.#output.endsWith(end)) {
        const problem = await Promise.race([this.#changed.promise, this.#ended, late.promise]);
        if (problem !== undefined)
          throw new Error(`${problem}:\n${script}\n${this.#output}\n${this.#errors}`);
      }
    } finally {
      clearTimeout(timer);
    }
    return this.#output.slice(0, -end.length);
  }

  /** The value of a variable. */
  read = async (name: string): Promise<string> => (await this.run(`printf '%s\\n' "$${name}"`)).slice(0, -1);

  async stop(): Promise<void> {
    // The group is gone if the last script has ended it.
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    await this.#ended;
    rmSync(this.folder, { recursive: true, force: true });
  }

  #add(text: string): void {
    this.#output += text;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}
