import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect } from '@jest/globals';

export type SampleLanguage = 'ts' | 'python';

/** A section of docs/recipes.md. */
export interface Recipe {
  /** Without its number. */
  title: string;
  /** Null for the setup. */
  number: number | null;
  /** The blocks of bash, without their fences. */
  blocks: string[];
  /** The blocks in the languages of the SDKs. */
  samples: Record<SampleLanguage, string[]>;
  /** The parts of answers that the document shows. */
  answers: unknown[];
  /** The errors that the document names: a status and a code. */
  errors: { status: number; code: string }[];
}

const PAGE = resolve(import.meta.dirname, '../../docs/recipes.md');

/** @throws SyntaxError if an answer is not JSON, and Error for a fence of another language. */
export function readRecipes(): Recipe[] {
  const [introduction = '', ...sections] = readFileSync(PAGE, 'utf8').split(/^## /m);
  if (introduction.includes('```')) throw new Error('A block above the first section belongs to no recipe');
  return sections.map((section) => {
    const [heading = ''] = section.split('\n', 1);
    const [, number, title = ''] = /^(?:(\d+)\. )?(.*)$/.exec(heading) ?? [];
    const fences = [...section.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].map(([, language, text = '']) => ({
      language,
      text,
    }));
    const textsOf = (wanted: string) =>
      fences.filter(({ language }) => language === wanted).map(({ text }) => text);
    const other = fences.find(({ language }) => !['bash', 'ts', 'python', 'json'].includes(language ?? ''));
    if (other) throw new Error(`The recipe "${title}" has a block of ${other.language || 'no language'}`);
    return {
      title,
      number: number === undefined ? null : Number(number),
      blocks: textsOf('bash'),
      samples: { ts: textsOf('ts'), python: textsOf('python') },
      answers: textsOf('json').map((text) => JSON.parse(text)),
      errors: [...section.matchAll(/\b(\d{3})\s`([a-z_]+)`/g)].map(([, status, code = '']) => ({
        status: Number(status),
        code,
      })),
    };
  });
}

const MARK = /^(?:#|\/\/) (Meanwhile: .*)$/m;

/** A block cut before what others do in the meantime: `meanwhile` happens before `script` runs. */
export function splitAtMarks(block: string): { meanwhile: string | null; script: string }[] {
  const [first = '', ...rest] = block.split(MARK);
  const marked = rest.flatMap((text, index) =>
    index % 2 === 0 ? [{ meanwhile: text, script: rest[index + 1] ?? '' }] : [],
  );
  return [{ meanwhile: null, script: first }, ...marked];
}

/** Whatever has at least the fields of a shown answer. `…` in a string stands for any text. */
export function matcherOf(shown: unknown): unknown {
  if (Array.isArray(shown)) return shown.map(matcherOf);
  if (typeof shown === 'object' && shown !== null)
    return expect.objectContaining(
      Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, matcherOf(value)])),
    );
  if (typeof shown !== 'string' || !shown.includes('…')) return shown;
  const pattern = shown
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('.+');
  return expect.stringMatching(new RegExp(`^${pattern}$`));
}
