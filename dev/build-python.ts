import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { findPython, PYTHON_CLIENT, preparePython } from './python-environment.ts';

/** `npm run build:clients`: the wheel and the sdist of the Python client, in clients/python/dist. */
const python = findPython();
if (python === null) throw new Error('The Python client needs Python 3.10 or newer with venv to be built.');
const folder = join(PYTHON_CLIENT, 'dist');
rmSync(folder, { recursive: true, force: true });
// The backend is in the environment, so that a build needs no network.
const args = ['-m', 'build', '--no-isolation', '--outdir', folder, PYTHON_CLIENT];
execFileSync(await preparePython(python), args, { stdio: 'inherit' });
