import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';

const FOLDER = import.meta.dirname;

/** Builds the program with all that it needs, in parts that are loaded when a command needs them. */
export async function buildProgram(outdir = join(FOLDER, 'dist')): Promise<string> {
  await rm(outdir, { recursive: true, force: true });
  await build({
    entryPoints: [{ in: join(FOLDER, 'src/main.ts'), out: 'agent-email' }],
    outdir,
    bundle: true,
    splitting: true,
    minifySyntax: true,
    minifyWhitespace: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    outExtension: { '.js': '.mjs' },
    legalComments: 'none',
    logLevel: 'warning',
    // commander is CommonJS and asks for modules of Node.
    banner: {
      js: "import{createRequire as _r}from'node:module';const require=_r(import.meta.url);",
    },
  });
  const program = join(outdir, 'agent-email.mjs');
  await chmod(program, 0o755);
  return program;
}

if (process.argv[1] === import.meta.filename) await buildProgram(process.argv[2]);
