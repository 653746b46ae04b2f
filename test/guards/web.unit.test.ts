import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { joinScripts } from '../../web/shell/assets.routes.ts';

const WEB = join(import.meta.dirname, '../../web');
const filesOf = (extension: string) =>
  readdirSync(WEB, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(extension))
    .map((name) => ({ name, text: readFileSync(join(WEB, name), 'utf8') }));
const TEMPLATES = filesOf('.eta');

test('pages run no statement: routes and templates call use-cases', () => {
  const statements = /\bfrom 'kysely'|\bsql[`<]|\.db\b|\bdatabase\.(?:read|transaction|systemTransaction)\b/;
  const sources = filesOf('.ts');
  expect(sources.length).toBeGreaterThan(30);
  expect(sources.filter(({ text }) => statements.test(text)).map(({ name }) => name)).toEqual([]);
});

/** POST routes that are no `pages.form`, because there is no page of theirs to show again. */
const WITHOUT_PAGE: Record<string, string> = {
  '/account/passkeys/options': 'a script asks for them, and reads JSON',
  '/impersonation/end':
    'a button without fields in the banner of every page, which must work whatever has ended',
  '/login/mfa/passkey/options': 'a script asks for them, and reads JSON',
  '/login/passkey/options': 'a script asks for them, and reads JSON',
  '/logout': 'a button without fields on every page',
};

test('forms are `pages.form`, which shows their page again with what is wrong', () => {
  const sources = filesOf('.ts').filter(({ name }) => name !== 'shell/pages.ts');
  const plain = sources.flatMap(({ text }) => [
    ...text.matchAll(/(?<!\bPromise)\.(?:post|put|patch|all|route)\(\s*(?:['`]([^'`]+))?/g),
  ]);
  expect(plain.map(([, path]) => path).sort()).toEqual(Object.keys(WITHOUT_PAGE));
});

describe('templates', () => {
  test('print unescaped only what `ui` and other templates return', () => {
    const printed = TEMPLATES.flatMap(({ name, text }) =>
      [...text.matchAll(/<%~(.*?)%>/gs)].map(([, expression = '']) => `${name}: ${outline(expression)}`),
    );
    const part = String.raw`(?:ui\.(?:of@\.)?\w+@|include@|it\.(?:body|inputs))`;
    const allowed = new RegExp(String.raw`: (?:[^?:]+ \? ${part} : )?${part}$`);
    expect(printed.length).toBeGreaterThan(100);
    expect(printed.filter((each) => !allowed.test(each))).toEqual([]);
  });

  test('give dialogs only fields that `ui` makes', () => {
    const inputs = TEMPLATES.flatMap(({ name, text }) =>
      [...text.matchAll(/\binputs: *(.{0,60})/g)].map(([, value]) => `${name}: ${value}`),
    );
    expect(inputs.length).toBeGreaterThan(0);
    expect(inputs.filter((each) => !/: (?:[\w.> ]+ \? )?(?:ui\.|\[|inputs\b)/.test(each))).toEqual([]);
  });

  test.each([
    ['style of their own', /<style\b|\sstyle=/],
    ['script in the page', /<script(?![^>]*\ssrc=)/],
    ['handler in an attribute', /\son[a-z]+=["']/],
    ['link that runs a script', /javascript:/i],
    ['text that eval would run', /\beval\(|new Function/],
  ])('have no %s, which the content security policy would refuse', (_what, pattern) => {
    const printers = [...TEMPLATES, ...filesOf('ui.ts'), ...filesOf('charts.ts')];
    expect(printers.filter(({ text }) => pattern.test(text)).map(({ name }) => name)).toEqual([]);
  });
});

test('all scripts have at most 30 KB and the style 20 KB, compressed; scripts use no eval', () => {
  const script = joinScripts(join(WEB, 'components/scripts'));
  const style = readFileSync(join(WEB, 'components/style.css'));
  expect(script.toString()).not.toMatch(/\beval\(|new Function|insertAdjacentHTML|document\.write/);
  expect(gzipSync(script).length).toBeLessThanOrEqual(30_000);
  expect(gzipSync(style).length).toBeLessThanOrEqual(20_000);
});

/** An expression without its strings; `@` stands for parentheses with what is in them. */
function outline(expression: string): string {
  let text = expression.replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/g, '_').trim();
  while (/\([^()]*\)/.test(text)) text = text.replace(/\([^()]*\)/g, '@');
  return text.replace(/\s+/g, ' ');
}
