import { execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { ToolResult } from './mcp-client.ts';

/** Where `.ci/run` installs the Inspector and the official Python client, which are too large for package.json. */
const CACHE = join(homedir(), '.cache', 'agent-email');
const PYTHON = join(CACHE, 'mcp-python-2.3.0', 'bin', 'python');
const INSPECTOR = join(CACHE, 'mcp-inspector-2.12.0', 'node_modules', '.bin', 'mcp-inspector');

/** What keeps a test from using them; undefined if nothing does. */
export const findPythonObstacle = (): string | undefined =>
  existsSync(PYTHON) && spawnSync(PYTHON, ['-c', 'import mcp']).status === 0
    ? undefined
    : `${PYTHON} has no module mcp: .ci/run installs it`;
export const findInspectorObstacle = (): string | undefined =>
  existsSync(INSPECTOR) ? undefined : `${INSPECTOR} is missing: .ci/run installs it`;

/** A client of the tools, as an agent's host has one. */
export interface HostClient {
  call(name: string, args: object): Promise<ToolResult>;
  stop(): Promise<void>;
}

/** The official TypeScript client. It checks each answer by the outputSchema of its tool. */
export async function connectTypeScript(url: string, key: string): Promise<HostClient> {
  const client = new Client({ name: 'recipes', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  await client.listTools();
  return {
    async call(name, args) {
      const result = await client.callTool({ name, arguments: args as Record<string, unknown> });
      const [content] = result.content as { text: string }[];
      return {
        isError: result.isError === true,
        answer: (result.structuredContent ?? {}) as ToolResult['answer'],
        text: content?.text ?? '',
      };
    },
    stop: () => client.close(),
  };
}

/** The official Python client, in a process of its own. */
export async function connectPython(url: string, key: string, mode = 'auto'): Promise<HostClient> {
  const bridge = join(import.meta.dirname, 'mcp-bridge.py');
  const child = spawn(PYTHON, [bridge, url, mode], {
    env: { PATH: process.env.PATH, AGENT_EMAIL_API_KEY: key },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async call(name, args) {
      child.stdin.write(`${JSON.stringify({ name, arguments: args })}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`The Python client has ended:\n${errors}`);
      return JSON.parse(value) as ToolResult;
    },
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}

/** Runs the Inspector without its page. It exits with 6 if a schema of a tool is not portable. */
export async function inspect(url: string, key: string, args: string[]): Promise<unknown> {
  const common = ['--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${key}`];
  const { stdout } = await promisify(execFile)(process.execPath, [INSPECTOR, ...common, ...args], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return JSON.parse(stdout);
}
