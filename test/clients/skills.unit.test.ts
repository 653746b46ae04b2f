import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { TOOLS } from '../../api/mcp/tools/index.ts';
import { completionScript } from '../../clients/cli/src/commands/completion.ts';
import { createProgram } from '../../clients/cli/src/program.ts';
import { VERSION } from '../../clients/cli/src/version.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const { stdin, stdout, stderr } = process;
const program = createProgram({ stdin, stdout, stderr, env: {} });

type Command = ReturnType<typeof createProgram>;

/** The commands that a text runs, as lists of words. */
const commandsIn = (text: string): string[][] =>
  [...text.matchAll(/agent-email ((?!is|prints|login`)[a-z][^`\n|<#]*)/g)].map(([, line = '']) =>
    line.trim().split(/\s+/),
  );

/** What of a command line the program does not know. */
function unknownIn(words: string[]): string[] {
  let command: Command = program;
  const rest = [...words];
  for (;;) {
    const next = command.commands.find((each) => each.name() === rest[0]);
    if (!next) break;
    command = next;
    rest.shift();
  }
  const known = [...command.options, ...program.options].map(({ long }) => long);
  const unknown = rest
    .filter((word) => word.startsWith('--'))
    .filter((word) => !known.includes(word) && word !== '--help');
  return command === program ? [words[0] ?? '', ...unknown] : unknown;
}

const all = (command: Command, path = ''): string[] =>
  command.commands.flatMap((each) => [`${path}${each.name()}`, ...all(each, `${path}${each.name()} `)]);

describe('a skill', () => {
  test.each(readdirSync(join(ROOT, 'skills')))('%s has the front matter of the format', (folder) => {
    const [, name, description] =
      /^---\nname: ([a-z0-9-]{1,64})\ndescription: (.{1,1024})\n---\n/.exec(
        read(`skills/${folder}/SKILL.md`),
      ) ?? [];
    expect(name).toBe(folder);
    expect(description?.length).toBeGreaterThan(50);
  });

  test('for the command line names commands and options that exist', () => {
    const commands = commandsIn(read('skills/agent-email-cli/SKILL.md'));
    expect(commands.length).toBeGreaterThan(15);
    for (const words of commands)
      expect({ words, unknown: unknownIn(words) }).toEqual({ words, unknown: [] });
  });

  test('for MCP names all tools, and no other', () => {
    const named = [...read('skills/agent-email-mcp/SKILL.md').matchAll(/`([a-z]+(?:_[a-z]+)*)`/g)].map(
      ([, name]) => name,
    );
    const tools = TOOLS.map(({ name }) => name);
    expect(tools.filter((name) => !named.includes(name))).toEqual([]);
    const words = [
      'untrusted',
      'pending_approval',
      'since',
      'injection',
      'signals',
      'authentication',
      'code',
      'fix',
    ];
    const fields = ['client_id', 'idempotency_key', 'wait_seconds'];
    expect(named.filter((name = '') => ![...tools, ...words, ...fields].includes(name))).toEqual([]);
  });
});

describe('the documents of the command line', () => {
  test.each(['docs/cli.md', 'clients/cli/README.md'])('%s names commands and options that exist', (file) => {
    for (const words of commandsIn(read(file)))
      expect({ words, unknown: unknownIn(words) }).toEqual({ words, unknown: [] });
  });

  test('the guide names every command', () => {
    const text = read('docs/cli.md');
    expect(all(program).filter((path) => path !== 'webhooks' && !text.includes(`\`${path}`))).toEqual([]);
  });

  test('the version is that of the package', () => {
    expect(JSON.parse(read('clients/cli/package.json')).version).toBe(VERSION);
  });
});

describe('completion', () => {
  test.each(['bash', 'zsh', 'fish'])('in %s knows every command and its options', (shell) => {
    const script = completionScript(program, shell);
    for (const command of ['login', 'listen', 'purge', 'doctor']) expect(script).toContain(command);
    for (const option of ['forward-to', 'idempotency-key', 'profile']) expect(script).toContain(option);
  });
});
