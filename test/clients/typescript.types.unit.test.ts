import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';

jest.setTimeout(120_000);

mkdirSync('.cache', { recursive: true });
// Within the repository, so that the compiler finds the packages.
const folder = mkdtempSync(resolve('.cache/typescript-types-'));
const README = readFileSync('clients/typescript/README.md', 'utf8');
const samples = [...README.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code);

/** What the README's reader has: a client, a framework, a model, a place to store a position. */
const ambient = `
declare const stored: string | undefined;
declare function store(position: string | undefined): void;
declare const rawBody: Buffer;
declare const request: import('node:http').IncomingMessage;
declare const model: unknown;
declare const prompt: string;
declare function isStepCount(count: number): unknown;
declare function generateText(options: { model: unknown; prompt: string; tools: object; stopWhen: unknown }): Promise<{ text: string }>;
`;
const ownClient = "import { AgentEmail as Client } from 'agent-email';\nconst client = new Client();\n";

const VIEWS = `
import { AgentEmail, type AgentMessage, type Message, type MessageListItem, type MessagesListParams, type MessageView, type Page, webhooks } from 'agent-email';
const client = new AgentEmail({ apiKey: process.env.SOME_KEY, baseUrl: process.env.SOME_URL });
declare const view: MessageView;
declare const params: MessagesListParams;
declare const signal: AbortSignal | undefined;

const compact: Page<MessageListItem> = await client.messages.list('inb_1', { view: 'compact', limit: undefined });
const listed: Page<MessageListItem>[] = [
  await client.messages.listAll({ view: 'summary' }),
  await client.messages.listAll({ view: 'full' }),
  await client.messages.list('inb_1'),
];
const short: Page<AgentMessage> = await client.messages.list('inb_1', { view: 'agent' });
const either: Page<MessageListItem | AgentMessage> = await client.messages.list('inb_1', params);
const one: Message | AgentMessage = await client.messages.get('msg_1', { view }, { signal, timeoutMs: undefined });
const waited: Message | AgentMessage = await client.waitForMessage('inb_1', { view });
const settled: Message | AgentMessage = await client.waitForOutcome('msg_1', { view, timeoutSeconds: undefined });
webhooks.unwrap('{}', {}, process.env.WEBHOOK_SECRET);
webhooks.unwrap('{}', {}, [process.env.WEBHOOK_SECRET, process.env.OLD_SECRET], { toleranceSeconds: undefined });
await client.attach('inb_1', [{ filename: 'a.txt', content: 'a', content_type: undefined, content_id: undefined }]);
// @ts-expect-error: compact leaves the direction out.
const direction: string = compact.data[0]!.direction;
// @ts-expect-error: the view may be the short one.
const full: Message = await client.messages.get('msg_1', { view });
// @ts-expect-error: one message has no such view.
await client.messages.get('msg_1', { view: 'compact' });
export { compact, direction, either, full, listed, one, settled, short, waited };
`;

let output: string;
beforeAll(async () => {
  samples.forEach((sample, index) => {
    const hasClient = sample.includes('new AgentEmail(') || !/\bclient\b/.test(sample);
    writeFileSync(
      join(folder, `sample-${index + 1}.mts`),
      `${hasClient ? '' : ownClient}${sample}export {};\n`,
    );
  });
  writeFileSync(join(folder, 'views.mts'), VIEWS);
  writeFileSync(join(folder, 'ambient.d.ts'), ambient);
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: resolve('tsconfig.json'),
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: true,
        noUnusedLocals: false,
        verbatimModuleSyntax: false,
      },
      include: ['*.mts', '*.d.ts'],
    }),
  );
  const compiler = resolve('node_modules/typescript/bin/tsc');
  output = await promisify(execFile)(process.execPath, [compiler, '-p', folder]).then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const errorsIn = (name: string): string[] => output.split('\n').filter((line) => line.includes(`/${name}`));

test('the samples of the README compile, strict and with exactOptionalPropertyTypes', () => {
  expect(samples.length).toBeGreaterThan(6);
  expect(errorsIn('sample-')).toEqual([]);
});

test('every view, also one that only the running program knows, has the type of its answer', () => {
  expect(errorsIn('views.mts')).toEqual([]);
});

test('the client compiles with exactOptionalPropertyTypes', () => {
  expect(output).toBe('');
});
