import type { ChildProcess } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { type Ran, recipeParts } from './recipe-parts.ts';
import { startRecipeRun } from './recipe-run.ts';
import { matcherOf, type Recipe, readRecipes, type SampleLanguage, splitAtMarks } from './recipes.ts';
import { useResource } from './use-resource.ts';

const RECIPES = readRecipes();

type FromProgram = { printed: unknown[] } | { meanwhile: string } | { ends: string } | { exit: unknown };

export interface SampleProgram {
  language: SampleLanguage;
  /** The name of the program's file. */
  file: string;
  /** What stands above the samples. */
  prelude: string;
  /** A statement that waits until others have acted. */
  meanwhile(mark: string): string;
  /** A statement that ends a recipe. */
  ends(title: string): string;
  /** Starts the program, with Node's channel to this process. */
  spawn(path: string, options: { cwd: string; env: NodeJS.ProcessEnv }): ChildProcess;
}

/** The variables of bash that hold the same, for the checks. */
type Variables = Record<string, unknown>;

/** Runs the samples of a language as one program, with what others do meanwhile, and checks what each recipe does. */
export function testSamples({ language, file, prelude, meanwhile, ends, spawn }: SampleProgram): {
  /** The path of the program. */
  program: string;
} {
  /** In the repository, so that the program resolves the client and its types. */
  const folder = resolve('.cache', `recipes-${language}-${process.pid}`);
  const path = join(folder, file);

  const own = useResource(
    async () => {
      mkdirSync(folder, { recursive: true });
      writeFileSync(path, prelude + programOf(language, { meanwhile, ends }));
      const run = await startRecipeRun();
      const child = spawn(path, {
        cwd: run.bash.folder,
        env: {
          ...process.env,
          AGENT_EMAIL_API_KEY: await run.read('API_KEY'),
          AGENT_EMAIL_BASE_URL: await run.read('BASE_URL'),
          WEBHOOK_URL: await run.read('WEBHOOK_URL'),
          DOMAIN: run.domain,
        },
      });
      return {
        ...run,
        messages: readMessages(child),
        go: () => child.send('go'),
        async stop() {
          child.kill();
          rmSync(folder, { recursive: true, force: true });
          await run.stop();
        },
      };
    },
    (started) => started.stop(),
  );
  const parts = recipeParts(own);

  const VARIABLES: Record<
    string,
    (answers: Ran['answers'], printed: unknown[]) => Variables | Promise<Variables>
  > = {
    'Create once': ([inbox]) => ({ INBOX: inbox?.id, ADDRESS: inbox?.email }),
    'Attach files': ([sent]) => ({ MESSAGE: sent?.id }),
    'Read what is new': ([answer]) => ({ LAST: answer?.id }),
    'Get a code': (_, [code]) => ({ CODE: code }),
    'Use your own domain': async () => ({
      DOMAIN_ID: (await own.call('GET', '/domains')).body.data[0]?.id,
    }),
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

  test('each recipe has one sample', () => {
    expect(RECIPES.filter(({ samples }) => samples[language].length !== 1).map(({ title }) => title)).toEqual(
      [],
    );
  });

  // The program waits at the recipe that failed.
  let failed: string | null = null;

  test.each(RECIPES)('$title', async (recipe) => {
    if (failed !== null) throw new Error(`The program stopped at "${failed}"`);
    failed = recipe.title;
    await runSample(recipe);
    failed = null;
  });

  async function runSample({ title, answers }: Recipe): Promise<void> {
    const printed: unknown[] = [];
    for (;;) {
      const { value: message } = await own.messages.next();
      if ('printed' in message) printed.push(...message.printed);
      else if ('meanwhile' in message) {
        await keepVariables(title, printed);
        const act = parts.meanwhile[message.meanwhile];
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
    await parts.checks[title]?.({ output, answers: given });
    own.go();
  }
  return { program: path };
}

/** One program of all samples, which stops where others act and after each recipe. */
function programOf(
  language: SampleLanguage,
  { meanwhile, ends }: Pick<SampleProgram, 'meanwhile' | 'ends'>,
): string {
  return RECIPES.map(({ title, samples }) => {
    const code = splitAtMarks(samples[language].join('\n')).map(({ meanwhile: mark, script }) =>
      mark === null ? script : `${meanwhile(mark)}\n${script}`,
    );
    return `${code.join('')}\n${ends(title)}\n`;
  }).join('\n');
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
    const message = waiting.shift();
    if (message) yield message;
    else
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  }
}

const answersIn = (printed: unknown[]): Ran['answers'] =>
  printed.filter((value) => typeof value === 'object' && value !== null) as Ran['answers'];
