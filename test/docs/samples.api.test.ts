import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { AgentEmail } from '../../clients/typescript/src/index.ts';
import { BASE_URL } from '../../dev/docs/links.ts';
import { findPython, PYTHON_CLIENT, preparePython } from '../../dev/python-environment.ts';
import { siteOf } from '../support/documents.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
const readSite = siteOf(() => app);

/** The samples of one operation in the reference. */
interface Samples {
  operation: string;
  sh: string;
  ts: string | undefined;
  python: string | undefined;
}

/** A request that a sample makes. */
interface Sent {
  method: string;
  url: string;
  body: unknown;
}

let samples: Samples[];
beforeAll(async () => {
  const site = await readSite();
  samples = [...site]
    .filter(([path]) => /^reference\/.*\.md$/.test(path))
    .flatMap(([, text]) => String(text).split(/^## /m))
    .flatMap((section) => {
      const [, operation] = /^Operation `([\w.]+)`/m.exec(section) ?? [];
      if (operation === undefined) return [];
      const blockOf = (language: string) =>
        new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(section)?.[1];
      return [{ operation, sh: blockOf('sh') ?? '', ts: blockOf('ts'), python: blockOf('python') }];
    });
});

/** Every id in a path is this one, so that the requests of all languages are alike. */
const ID = 'an-id';

/** The requests that the commands make, by a stand-in for curl that shows its arguments. */
function runCommands(): Map<string, Sent> {
  const variables = new Set(
    samples.flatMap(({ sh }) => [...sh.matchAll(/\$([A-Z_]+)/g)].map(([, name]) => name)),
  );
  const script = [
    `curl() { printf '%s\\037' "$@"; printf '\\036'; }`,
    ...[...variables].map((name) => `${name}=${ID}`),
    ...samples.map(({ sh }) => sh),
  ].join('\n');
  const calls = execFileSync('bash', ['-euc', script], { encoding: 'utf8', maxBuffer: 16_777_216 })
    .split('\u001e')
    .filter((call) => call !== '')
    .map((call) => call.split('\u001f').slice(0, -1));
  expect(calls).toHaveLength(samples.length);
  return new Map(samples.map(({ operation }, index) => [operation, readCall(calls[index] ?? [])]));
}

function readCall(args: readonly string[]): Sent {
  const after = (option: string) => (args.includes(option) ? args[args.indexOf(option) + 1] : undefined);
  const json = after('-d');
  const hasBody = ['-d', '-F', '--data-binary'].some((option) => args.includes(option));
  return {
    method: after('-X') ?? (hasBody ? 'POST' : 'GET'),
    url: args.find((arg) => arg.startsWith('https://')) ?? '',
    body: json === undefined ? undefined : JSON.parse(json),
  };
}

const AsyncFunction = (async () => undefined).constructor as new (
  ...args: string[]
) => (...values: unknown[]) => Promise<unknown>;

/** The first request that a program in TypeScript makes. */
function runProgram(code: string): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const client = new AgentEmail({
      apiKey: 'ask_test_x',
      baseUrl: BASE_URL,
      maxRetries: 0,
      fetch: async (url, init) => {
        const { body } = init ?? {};
        resolve({
          method: init?.method ?? 'GET',
          url: String(url),
          body: typeof body === 'string' ? JSON.parse(body) : undefined,
        });
        return Response.json({ data: [], has_more: false, next_cursor: null });
      },
    });
    const [, args = ''] = /client\.\w+\.\w+\(([^{)]*)/.exec(code) ?? [];
    const names = args.split(', ').filter((name) => /^\w+$/.test(name));
    // A function has no import declarations.
    const body = code.replace(/^import .*$/gm, '');
    const run = new AsyncFunction('client', 'readFile', 'console', ...names, body);
    run(client, async () => Buffer.from('file'), { log: () => undefined }, ...names.map(() => ID)).catch(
      reject,
    );
  });
}

/** The first request that each program in Python makes. */
const RUN_PYTHON = `
import json, os, re, sys
import httpx
from agent_email import AgentEmail

class Sent(BaseException):
    pass

def show(request):
    raise Sent(request)

os.chdir(sys.argv[1])
open("invoice.pdf", "w").close()
client = AgentEmail(api_key="ask_test_x", base_url=sys.argv[2], http_client=httpx.Client(transport=httpx.MockTransport(show)))
for code in json.load(sys.stdin):
    arguments = re.search(r"client\\.\\w+\\.\\w+\\(([^)]*)", code).group(1)
    names = {name.strip(): sys.argv[3] for name in arguments.split(",") if re.fullmatch(r"\\s*[a-z_]+\\s*", name)}
    try:
        exec(code, {"client": client, **names})
        raise AssertionError("no request: " + code)
    except Sent as sent:
        request = sent.args[0]
        is_json = request.headers.get("content-type") == "application/json"
        print(json.dumps({"method": request.method, "url": str(request.url), **({"body": json.loads(request.content)} if is_json else {})}))
`;

async function runPython(interpreter: string, codes: readonly string[]): Promise<Sent[]> {
  const python = await preparePython(interpreter);
  const folder = mkdtempSync(join(tmpdir(), 'samples-'));
  try {
    const output = execFileSync(python, ['-c', RUN_PYTHON, folder, BASE_URL, ID], {
      input: JSON.stringify(codes),
      encoding: 'utf8',
      env: { ...process.env, PYTHONPATH: join(PYTHON_CLIENT, 'src') },
    });
    return output
      .trim()
      .split('\n')
      .map((line) => ({ body: undefined, ...(JSON.parse(line) as Omit<Sent, 'body'>) }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// Skipped tests are counted, and .ci/run reports them.
const interpreter = findPython();

describe('the samples of the reference', () => {
  test('stand for every operation with curl, and for every one of the clients in their languages', () => {
    const operations = app.contract.operations.filter((operation) => !operation['x-alias-of']);
    expect(samples.map(({ operation }) => operation).toSorted()).toEqual(
      operations.map(({ operationId }) => operationId).toSorted(),
    );
    const withClients = samples.filter(({ ts, python }) => ts !== undefined && python !== undefined);
    expect(withClients.length).toBeGreaterThan(120);
    expect(samples.filter(({ ts, python }) => (ts === undefined) !== (python === undefined))).toEqual([]);
  });

  test('call the operation with curl: its method, its path, a body that its schema accepts', () => {
    const sent = runCommands();
    const wrong = app.contract.operations.flatMap(({ operationId, method, path }) => {
      const request = sent.get(operationId);
      if (!request) return [];
      const expected = `${method} ${BASE_URL}${path.replace(/\{\w+\}/g, ID)}`;
      const actual = `${request.method} ${request.url.split('?')[0]}`;
      return actual === expected ? [] : [`${operationId}: ${actual}, not ${expected}`];
    });
    expect(wrong).toEqual([]);
  });

  test('make the same request with the TypeScript client', async () => {
    const commands = runCommands();
    let count = 0;
    for (const { operation, ts } of samples) {
      if (ts === undefined) continue;
      count += 1;
      const sent = await runProgram(ts).catch((error: unknown) => error);
      expect({ operation, sent }).toEqual({ operation, sent: commands.get(operation) });
    }
    expect(count).toBeGreaterThan(120);
  });

  (interpreter === null ? test.skip : test)(
    'make the same request with the Python client',
    async () => {
      const commands = runCommands();
      const inPython = samples.flatMap(({ operation, python }) =>
        python === undefined ? [] : [{ operation, python }],
      );
      const sent = await runPython(
        interpreter ?? '',
        inPython.map(({ python }) => python),
      );
      for (const [index, { operation }] of inPython.entries())
        expect({ operation, sent: sent[index] }).toEqual({ operation, sent: commands.get(operation) });
    },
    300_000,
  );
});
