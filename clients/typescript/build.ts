import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';

/** `npm run build [-- FOLDER]`: the package as ES modules and as CommonJS, each with its declarations. Default: dist. */
const FOLDER = import.meta.dirname;
const OUTPUT = resolve(process.argv[2] ?? join(FOLDER, 'dist'));
const require = createRequire(import.meta.url);
const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin/tsc');
const AS_COMMON_JS = [
  '--module',
  'commonjs',
  '--moduleResolution',
  'bundler',
  '--verbatimModuleSyntax',
  'false',
];

function compile(format: 'esm' | 'cjs', ...options: string[]): void {
  const output = join(OUTPUT, format);
  const project = join(FOLDER, 'tsconfig.build.json');
  execFileSync(process.execPath, [tsc, '-p', project, '--outDir', output, ...options], { stdio: 'inherit' });
  // The compiler rewrites the imports of modules, but not those of declarations.
  for (const file of globSync(join(output, '**/*.d.ts')))
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(/((?:from|import\() ?['"]\.[^'"]*)\.ts(?=['"])/g, '$1.js'),
    );
}

rmSync(OUTPUT, { recursive: true, force: true });
compile('esm');
compile('cjs', ...AS_COMMON_JS);
writeFileSync(join(OUTPUT, 'cjs/package.json'), '{ "type": "commonjs" }\n');
