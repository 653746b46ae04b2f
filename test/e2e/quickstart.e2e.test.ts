import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import nodemailer from 'nodemailer';
import { findPython, PYTHON_CLIENT, preparePython } from '../../dev/python-environment.ts';
import type { Database } from '../../platform/database/database.ts';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { createOrganization } from '../support/organizations.ts';
import { sharedService } from '../support/service.ts';
import { connect } from '../support/test-app.ts';

// The first run installs the packages of Python.
jest.setTimeout(300_000);

const run = promisify(execFile);
const PAGE = readFileSync(resolve('docs/quickstart.md'), 'utf8');
const samplesOf = (language: string): string[] =>
  [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, code = '']) => code,
  );
const interpreter = findPython();

let database: Database;
let folder: string;
beforeAll(() => {
  database = connect(sharedService().database_url);
  // In the repository, so that the program resolves the client.
  mkdirSync(resolve('.cache'), { recursive: true });
  folder = mkdtempSync(resolve('.cache/quickstart-'));
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A key of an organization of its own. */
async function newKey(): Promise<{ env: NodeJS.ProcessEnv; call: Call }> {
  const { token } = await createOrganization(database);
  const { base_url } = sharedService();
  return {
    env: { ...process.env, AGENT_EMAIL_BASE_URL: base_url, AGENT_EMAIL_API_KEY: token },
    call: apiClient({ base_url }, token),
  };
}

/** Ada answers the one message of the organization. */
async function answer(call: Call): Promise<void> {
  const sent = await eventually(async () => {
    const { body } = await call('GET', '/messages?view=full&direction=outbound');
    const [message] = body.data as Record<string, unknown>[];
    if (message?.status !== 'sent' && message?.status !== 'delivered')
      throw new Error('Nothing was sent yet');
    return message;
  }, 60_000);
  expect(sent).toMatchObject({ subject: 'The report', to_addresses: ['ada@people.example'] });
  const transport = nodemailer.createTransport({
    ...sharedService().inbound_smtp,
    secure: false,
    ignoreTLS: true,
  });
  await transport.sendMail({
    from: 'Ada <ada@people.example>',
    to: (sent.from_address as { email: string }).email,
    subject: 'Re: The report',
    inReplyTo: String(sent.rfc_message_id),
    text: 'Yes, please send it.\n\nOn Mon, Nov 23, 2026 at 9:00 AM First agent wrote:\n> Shall I send it?\n',
  });
  transport.close();
}

test('the quickstart works with curl, if its reader fills in the ids', async () => {
  const { env, call } = await newKey();
  const [, ...steps] = samplesOf('sh');
  expect(steps).toHaveLength(6);
  const ids = new Map<string, string>();
  const exports: string[] = [];
  const answers: Record<string, unknown>[] = [];
  for (const step of steps) {
    const filled = step.replace(
      /\b(inb|msg|thr)_…/g,
      (_whole, prefix: string) => ids.get(prefix) ?? 'unknown',
    );
    if (filled.startsWith('export ')) {
      exports.push(filled);
      continue;
    }
    if (filled.includes('/threads/')) await answer(call);
    const { stdout } = await run('bash', ['-euc', `${exports.join('')}${filled}`], { env });
    answers.push(JSON.parse(stdout));
    for (const [id, prefix = ''] of stdout.matchAll(/\b(inb|msg|thr)_\w+/g))
      if (!ids.has(prefix)) ids.set(prefix, id);
  }
  expect(answers).toEqual([
    expect.objectContaining({ object: 'inbox', client_id: 'first-inbox' }),
    expect.objectContaining({ object: 'message', status: 'queued' }),
    expect.objectContaining({ object: 'message', status: expect.stringMatching(/^(?:sent|delivered)$/) }),
    expect.objectContaining({ object: 'message', text: 'Yes, please send it.' }),
  ]);
});

test('the quickstart works with the TypeScript client, as one program', async () => {
  const { env, call } = await newKey();
  const program = join(folder, 'quickstart.ts');
  writeFileSync(program, samplesOf('ts').join('\n'));
  const [{ stdout }] = await Promise.all([
    run(process.execPath, ['--conditions=agent-email-source', program], { env }),
    answer(call),
  ]);
  expect(stdout).toMatch(/^\S+@\S+\n(?:sent|delivered)\nYes, please send it\.\n$/);
});

(interpreter === null ? test.skip : test)(
  'the quickstart works with the Python client, as one program',
  async () => {
    const { env, call } = await newKey();
    const program = join(folder, 'quickstart.py');
    writeFileSync(program, samplesOf('python').join('\n'));
    const python = await preparePython(interpreter ?? '');
    const [{ stdout }] = await Promise.all([
      run(python, [program], { env: { ...env, PYTHONPATH: join(PYTHON_CLIENT, 'src') } }),
      answer(call),
    ]);
    expect(stdout).toMatch(/^\S+@\S+\n(?:sent|delivered)\nYes, please send it\.\n$/);
  },
);
