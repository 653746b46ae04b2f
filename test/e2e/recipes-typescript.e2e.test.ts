import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, jest, test } from '@jest/globals';
import { type Ran, recipeParts } from '../support/recipe-parts.ts';
import { startRecipeRun } from '../support/recipe-run.ts';
import { matcherOf, readRecipes, splitAtMarks } from '../support/recipes.ts';
import { useResource } from '../support/use-resource.ts';

jest.setTimeout(120_000);

const RECIPES = readRecipes();
/** In the repository, so that the program resolves the client and its types. */
const FOLDER = resolve('.cache', `recipes-${process.pid}`);
const PROGRAM = join(FOLDER, 'recipes.ts');

/** One program of all samples, which stops where others act and after each recipe. */
const program = RECIPES.map(({ title, samples: { ts } }) => {
  const code = splitAtMarks(ts.join('\n')).map(({ meanwhile, script }) =>
    meanwhile === null ? script : `await meanwhile(${JSON.stringify(meanwhile)});\n${script}`,
  );
  return `${code.join('')}\nawait recipeEnds(${JSON.stringify(title)});\n`;
}).join('\n');
const DECLARATIONS = `declare function meanwhile(mark: string): Promise<void>;
declare function recipeEnds(title: string): Promise<void>;
`;

type FromProgram = { printed: unknown[] } | { meanwhile: string } | { ends: string } | { exit: unknown };

async function start() {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(PROGRAM, DECLARATIONS + program);
  const run = await startRecipeRun();
  const child = spawn(
    process.execPath,
    ['--conditions=agent-email-source', '--import', resolve('test/support/recipe-program.mts'), PROGRAM],
    {
      cwd: run.bash.folder,
      env: {
        ...process.env,
        AGENT_EMAIL_API_KEY: await run.read('API_KEY'),
        AGENT_EMAIL_BASE_URL: await run.read('BASE_URL'),
        WEBHOOK_URL: await run.read('WEBHOOK_URL'),
        DOMAIN: run.domain,
      },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    },
  );
  return {
    ...run,
    messages: readMessages(child),
    go: () => child.send('go'),
    async stop() {
      child.kill();
      rmSync(FOLDER, { recursive: true, force: true });
      await run.stop();
    },
  };
}

/** What the program says, in order. */
async function* readMessages(child: ChildProcess): AsyncGenerator<FromProgram> {
  const waiting: FromProgram[] = [];
  let wake: () => void = () => undefined;
  let errors = '';
  const add = (message: FromProgram) => {
    waiting.push(message);
    wake();
  };
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  child.on('message', (message) => add(message as FromProgram));
  child.on('close', (code) => add({ exit: `The program ended with ${code}: ${errors}` }));
  for (;;) {
    const [message] = waiting;
    // The end stays: each later test says it, too.
    if (message && !('exit' in message)) waiting.shift();
    if (message) yield message;
    else
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  }
}

const own = useResource(start, (started) => started.stop());
const { meanwhile, checks } = recipeParts(own);

/** The variables of bash that hold the same, for the checks. */
type Variables = Record<string, unknown>;
const VARIABLES: Record<
  string,
  (answers: Ran['answers'], printed: unknown[]) => Variables | Promise<Variables>
> = {
  'Create once': ([inbox]) => ({ INBOX: inbox?.id, ADDRESS: inbox?.email }),
  'Attach files': ([sent]) => ({ MESSAGE: sent?.id }),
  'Read what is new': ([answer]) => ({ LAST: answer?.id }),
  'Get a code': (_, [code]) => ({ CODE: code }),
  'Use your own domain': async () => ({ DOMAIN_ID: (await own.call('GET', '/domains')).body.data[0]?.id }),
  'Understand a bounce': ([lost]) => ({ LOST: lost?.id }),
  'Wait for an approval': ([offer]) => ({ OFFER_DRAFT: offer?.id }),
  'Follow and resume, then delete and prove it': ([left]) => ({
    GONE: (left?.data as { data: { message_id: string } }[] | undefined)?.[0]?.data.message_id,
  }),
};

async function keepVariables(title: string, printed: unknown[]): Promise<void> {
  const variables = Object.entries((await VARIABLES[title]?.(answersIn(printed), printed)) ?? {});
  for (const [name, value] of variables) if (value !== undefined) await own.bash.run(`${name}='${value}'`);
}

const answersIn = (printed: unknown[]): Ran['answers'] =>
  printed.filter((value) => typeof value === 'object' && value !== null) as Ran['answers'];

test('each recipe has one sample in TypeScript', () => {
  expect(RECIPES.filter(({ samples }) => samples.ts.length !== 1).map(({ title }) => title)).toEqual([]);
});

test('the types of the samples are right', async () => {
  const path = join(FOLDER, 'tsconfig.json');
  writeFileSync(path, JSON.stringify({ extends: resolve('tsconfig.json'), include: [PROGRAM] }));
  const tsc = resolve('node_modules/typescript/bin/tsc');
  expect(execFileSync(process.execPath, [tsc, '-p', path], { encoding: 'utf8' })).toBe('');
});

/** The recipe that runs, or that failed: the program does not go on after it. */
let unfinished: string | null = null;

test.each(RECIPES)('$title', async ({ title, answers }) => {
  if (unfinished !== null) throw new Error(`The recipe before failed: ${unfinished}`);
  unfinished = title;
  const printed: unknown[] = [];
  for (;;) {
    const { value: message } = await own.messages.next();
    if ('printed' in message) printed.push(...message.printed);
    else if ('meanwhile' in message) {
      await keepVariables(title, printed);
      const act = meanwhile[message.meanwhile];
      if (!act) throw new Error(`Nobody does what the sample says: ${message.meanwhile}`);
      await act();
      own.go();
    } else if ('ends' in message) {
      expect(message.ends).toBe(title);
      break;
    } else throw new Error(String(message.exit));
  }
  await keepVariables(title, printed);
  const output = printed
    .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .join('\n');
  const given = answersIn(printed);
  for (const shown of answers) expect(given).toContainEqual(matcherOf(shown));
  await checks[title]?.({ output, answers: given });
  unfinished = null;
  own.go();
});
