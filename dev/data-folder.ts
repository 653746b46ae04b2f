import { generateKeyPairSync, randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { AddedStaffMember } from '../domain/bootstrap/add-staff-member.ts';
import type { FirstOrganization } from '../domain/bootstrap/first-organization.ts';
import { type Log, processOf, stopLeftover, writePidFile } from './stack/child-process.ts';
import { stopLeftoverPostgres } from './stack/postgres.ts';

/** Created on the first start and kept: the data cannot be decrypted with another ENCRYPTION_KEY. */
export interface Secrets {
  encryptionKey: string;
  signingKey: string;
  metricsToken: string;
  postgresPassword: string;
  apiPassword: string;
  workerPassword: string;
}

/** What the first start created: its keys and passwords exist in plain text only here. */
export interface Seed extends FirstOrganization {
  /** Missing in a folder of an earlier version. */
  staff?: AddedStaffMember;
}

export interface DataFolder {
  postgres: string;
  s3: string;
  temporalDatabase: string;
  mailUi: string;
  spool: string;
  logFile(name: string): string;
  pidFile(name: string): string;
  secrets(): Secrets;
  /** PEM file of the DKIM key that signs mail from the shared domain; created on the first start and kept. */
  dkimKeyFile(): string;
  /** The result of the first start. The database stores only hashes of its keys, so they are kept here. */
  readSeed(): Seed | undefined;
  writeSeed(seed: Seed): void;
  /** Writes a file that only its owner may read; null deletes it. */
  writePrivate(name: string, content: string | null): string;
  release(): void;
}

/** Exists while every service is ready. */
export const FIRST_RUN_FILE = 'first-run.json';

const ENTRIES = ['postgres', 's3', 'temporal', 'mail', 'spool', 'logs', 'run'];
const DKIM_KEY_FILE = 'dkim-shared.pem';
/** The account of the stand-in for Stripe. */
export const STRIPE_STAND_IN_FILE = 'stripe-stand-in.json';
const PRIVATE_FILES = [
  DKIM_KEY_FILE,
  'secrets.json',
  'seed.json',
  FIRST_RUN_FILE,
  STRIPE_STAND_IN_FILE,
  'api.env',
  'worker.env',
];
const OWN_PID = 'start';

/**
 * Locks the data folder for this process, and stops processes that a killed start left running.
 *
 * @throws Error if another start uses the same folder.
 */
export async function openDataFolder(
  directory: string,
  { reset, log }: { reset: boolean; log: Log },
): Promise<DataFolder> {
  const folder = describe(directory);
  const other = processOf(folder.pidFile(OWN_PID));
  if (other !== undefined && other !== process.pid)
    throw new Error(`Another start is running (pid ${other}) on ${directory}. Stop it, or set DEV_DATA_DIR.`);
  // A killed start leaves the file behind.
  folder.writePrivate(FIRST_RUN_FILE, null);
  await stopLeftoverProcesses(directory, folder, log);
  if (reset) deleteData(directory);
  mkdirSync(directory, { recursive: true });
  // Under root PostgreSQL runs as another user, who must be able to enter the folder.
  chmodSync(directory, process.getuid?.() === 0 ? 0o711 : 0o700);
  for (const entry of ENTRIES) mkdirSync(join(directory, entry), { recursive: true, mode: 0o700 });
  rotateLogs(join(directory, 'logs'));
  writePidFile(folder.pidFile(OWN_PID));
  return folder;
}

function describe(directory: string): DataFolder {
  const readJson = <T>(name: string): T | undefined =>
    existsSync(join(directory, name))
      ? (JSON.parse(readFileSync(join(directory, name), 'utf8')) as T)
      : undefined;
  const writePrivate: DataFolder['writePrivate'] = (name, content) => {
    const file = join(directory, name);
    if (content === null) rmSync(file, { force: true });
    else {
      writeFileSync(`${file}.new`, content, { mode: 0o600 });
      renameSync(`${file}.new`, file);
    }
    return file;
  };
  return {
    postgres: join(directory, 'postgres'),
    s3: join(directory, 's3'),
    temporalDatabase: join(directory, 'temporal', 'temporal.db'),
    mailUi: join(directory, 'mail'),
    spool: join(directory, 'spool'),
    logFile: (name) => join(directory, 'logs', `${name}.log`),
    pidFile: (name) => join(directory, 'run', `${name}.pid`),
    secrets() {
      const kept = readJson<Partial<Secrets>>('secrets.json');
      // A folder of an earlier version lacks newer secrets.
      const made = { ...createSecrets(), ...kept };
      writePrivate('secrets.json', JSON.stringify(made, null, 2));
      return made;
    },
    dkimKeyFile() {
      const file = join(directory, DKIM_KEY_FILE);
      if (existsSync(file)) return file;
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      return writePrivate(DKIM_KEY_FILE, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    },
    readSeed: () => readJson<Seed>('seed.json'),
    writeSeed: (seed) => void writePrivate('seed.json', JSON.stringify(seed, null, 2)),
    writePrivate,
    release: () => rmSync(join(directory, 'run', `${OWN_PID}.pid`), { force: true }),
  };
}

function createSecrets(): Secrets {
  const password = () => randomBytes(18).toString('base64url');
  return {
    encryptionKey: randomBytes(32).toString('base64'),
    signingKey: randomBytes(32).toString('base64'),
    metricsToken: password(),
    postgresPassword: password(),
    apiPassword: password(),
    workerPassword: password(),
  };
}

/** Stops the processes that write to the database first. */
async function stopLeftoverProcesses(directory: string, folder: DataFolder, log: Log): Promise<void> {
  for (const name of ['api', 'workers', 'mail-ui', 'temporal'])
    await stopLeftover(folder.pidFile(name), name, log);
  await stopLeftoverPostgres(join(directory, 'postgres'), log);
}

/** Deletes only what a start creates: DEV_DATA_DIR may contain other files. */
function deleteData(directory: string): void {
  for (const name of [...ENTRIES, ...PRIVATE_FILES])
    rmSync(join(directory, name), { recursive: true, force: true });
}

function rotateLogs(logs: string): void {
  for (const name of readdirSync(logs).filter((file) => file.endsWith('.log')))
    renameSync(join(logs, name), join(logs, `${name}.last`));
}
