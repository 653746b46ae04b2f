import highlighter from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import go from 'highlight.js/lib/languages/go';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import typescript from 'highlight.js/lib/languages/typescript';
import yaml from 'highlight.js/lib/languages/yaml';

const LANGUAGES = { bash, go, json, python, typescript, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) highlighter.registerLanguage(name, language);

const ALIASES: Readonly<Record<string, keyof typeof LANGUAGES>> = {
  sh: 'bash',
  ts: 'typescript',
  js: 'typescript',
  yml: 'yaml',
};

/** The code as HTML, with a class for each kind of word; undefined for a language without rules. */
export function highlight(code: string, language: string): string | undefined {
  const name = ALIASES[language] ?? language;
  if (!Object.hasOwn(LANGUAGES, name)) return undefined;
  return highlighter.highlight(code, { language: name }).value;
}
