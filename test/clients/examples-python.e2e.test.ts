import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { findPython, PYTHON_CLIENT, preparePython } from '../../dev/python-environment.ts';
import type { Database } from '../../platform/database/database.ts';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { sharedService } from '../support/service.ts';
import { createTestSession } from '../support/sessions.ts';
import { connect } from '../support/test-app.ts';

// The first run installs the packages.
jest.setTimeout(300_000);

const EXAMPLES = resolve('examples');
const interpreter = findPython();
// Skipped tests are counted, and .ci/run reports them.
const describeIfInstalled = interpreter === null ? describe.skip : describe;
if (interpreter === null)
  console.warn('Python 3.10 or newer with venv is not installed: the examples in Python are not tested');

const agents = readdirSync(EXAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

test('each example in Python has at most 100 lines', () => {
  expect(agents).toHaveLength(3);
  for (const name of agents)
    expect(readFileSync(join(EXAMPLES, name, 'agent.py'), 'utf8').split('\n').length).toBeLessThanOrEqual(
      101,
    );
});

describeIfInstalled('the examples in Python', () => {
  const service = sharedService();
  let python = '';
  let database: Database;
  let organization: TestOrganization;
  let call: Call;
  let person: Call;
  beforeAll(async () => {
    python = await preparePython(interpreter ?? '');
    database = connect(service.database_url);
    organization = await createOrganization(database);
    const owner = await createTestSession(database, organization.ownerId);
    call = apiClient(service, organization.token);
    person = apiClient(service, owner.token);
  });
  afterAll(() => database.close());

  interface Running {
    child: ChildProcess;
    /** What it has printed. */
    output(): string;
    /** Resolves with its output when it has ended well. */
    ended: Promise<string>;
  }

  function start(name: string): Running {
    const { host, port } = service.inbound_smtp;
    const child = spawn(python, [join(EXAMPLES, name, 'agent.py')], {
      env: {
        ...process.env,
        PYTHONPATH: join(PYTHON_CLIENT, 'src'),
        PYTHONDONTWRITEBYTECODE: '1',
        AGENT_EMAIL_API_KEY: organization.token,
        AGENT_EMAIL_BASE_URL: service.base_url,
        INBOUND_SMTP: `${host}:${port}`,
      },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    const ended = new Promise<string>((done, fail) => {
      child.on('close', (code) =>
        code === 0 ? done(output) : fail(new Error(`It ended with ${code}:\n${output}`)),
      );
    });
    // Awaited later.
    ended.catch(() => undefined);
    return { child, output: () => output, ended };
  }

  test('sign-up confirms its address by the link of the shop, each time anew', async () => {
    for (let count = 0; count < 2; count++)
      expect(await start('sign-up').ended).toMatch(
        /^Signing up as (\S+)\nConfirming: Please confirm your email address\n\1 is confirmed\.\n$/,
      );
  });

  test('support-inbox answers what it knows, and leaves the rest to a person', async () => {
    expect(await start('support-inbox').ended).toBe(
      [
        'ada@people.example asks: Order 4711',
        '  answered: delivered',
        'ada@people.example asks: Broken',
        '  left to a person',
        '',
      ].join('\n'),
    );
    const { body } = await call('GET', '/messages?label=needs-person');
    expect(body.data.map(({ subject }) => subject)).toEqual(['Broken']);
  });

  test.each([
    { decision: 'approve', body: { version: 1 }, shown: '  answered: delivered' },
    { decision: 'reject', body: { version: 1, note: 'Too short.' }, shown: '  rejected: Too short.' },
  ])('support-inbox waits for a person: $decision', async ({ decision, body, shown }) => {
    const { status } = await person('PATCH', '/org/policies', { require_send_approval: 'external' });
    expect(status).toBe(200);
    const agent = start('support-inbox');
    try {
      const id = await eventually(() => {
        const [, draft] = /waits for an approval: (drf_\w+)/.exec(agent.output()) ?? [];
        if (!draft) throw new Error(`No draft yet:\n${agent.output()}`);
        return draft;
      }, 30_000);
      expect((await person('POST', `/drafts/${id}/${decision}`, body)).status).toBeLessThan(300);
      expect((await agent.ended).split('\n')).toContain(shown);
    } finally {
      agent.child.kill();
      await person('PATCH', '/org/policies', { require_send_approval: 'off' });
    }
  });

  test('newsletter-digest sends each newsletter in one digest', async () => {
    for (let count = 0; count < 2; count++)
      expect(await start('newsletter-digest').ended).toMatch(
        /^3 newsletters in msg_\w+\nThe digest: delivered\n$/,
      );
    const { body } = await call('GET', '/messages?direction=outbound&subject=newsletters&view=full');
    expect(body.data).toHaveLength(2);
    expect(body.data[0]).toMatchObject({
      text_body: expect.stringContaining('Three ships & a storm\nThree ships waited out the <b>storm</b>.'),
      html_body: expect.stringContaining('Three ships waited out the &lt;b&gt;storm&lt;/b&gt;.'),
    });
  });
});
