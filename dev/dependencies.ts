import { join } from 'node:path';
import { type AddedStaffMember, addStaffMember } from '../domain/bootstrap/add-staff-member.ts';
import { createFirstOrganization, type FirstOrganization } from '../domain/bootstrap/first-organization.ts';
import { createSecretBox } from '../platform/crypto.ts';
import { createDatabase } from '../platform/database/database.ts';
import { migrate } from '../workers/migrate.ts';
import { type DataFolder, STRIPE_STAND_IN_FILE } from './data-folder.ts';
import type { DevSettings } from './settings.ts';
import type { Log } from './stack/child-process.ts';
import { type MailUi, startMailUi } from './stack/mail-ui.ts';
import { type Postgres, startPostgres } from './stack/postgres.ts';
import { type Relay, startRelay } from './stack/relay.ts';
import { type S3Server, startS3 } from './stack/s3.ts';
import { startConcurrently } from './stack/start-concurrently.ts';
import { startTemporal, type TemporalServer } from './stack/temporal.ts';
import { findTemporalCli } from './stack/temporal-binaries.ts';
import { STAND_IN_PRICES, startStripeStandIn } from './stripe-stand-in/stand-in.ts';

const DATABASE = 'agent_email';

/** The running dependencies of the service, with the first organization created. */
export interface Dependencies {
  databaseUrls: { owner: string; api: string; worker: string };
  s3: S3Server['environment'];
  temporal: { address: string; uiUrl: string | undefined };
  mailUiUrl: string;
  /** Settings for the stand-in of Stripe; empty without one. */
  stripe: Record<string, string>;
  seed: FirstOrganization & { staff: AddedStaffMember };
}

export interface DependencyContext {
  settings: DevSettings;
  folder: DataFolder;
  log: Log;
  /** Aborts the start. */
  signal: AbortSignal;
  /** Called for each dependency that started, so that it is stopped even if others fail. */
  started(part: StartedDependency): void;
}

export interface StartedDependency {
  name: string;
  stop(): Promise<void>;
  /** Resolves with the reason if the dependency exits on its own. */
  exited?: Promise<string>;
}

/** Starts the dependencies, concurrently where possible. Resolves when all of them are ready. */
export async function startDependencies(context: DependencyContext): Promise<Dependencies> {
  const linked = (signal: AbortSignal) => ({ ...context, signal });
  const [database, s3, temporal, mailUi, stripe] = await startConcurrently(context.signal, [
    (signal) => startDatabase(linked(signal)),
    (signal) => startStorage(linked(signal)),
    (signal) => startWorkflowServer(linked(signal)),
    (signal) => startMailServers(linked(signal)),
    () => startBilling(context),
  ]);
  return { ...database, s3: s3.environment, temporal, mailUiUrl: mailUi.url, stripe };
}

async function startDatabase(
  context: DependencyContext,
): Promise<Pick<Dependencies, 'databaseUrls' | 'seed'>> {
  const { settings, folder, log } = context;
  const { postgresPassword, apiPassword, workerPassword } = folder.secrets();
  const postgres: Postgres = await startPostgres({
    dataDir: folder.postgres,
    port: settings.ports.postgres,
    password: postgresPassword,
    logFile: folder.logFile('postgres'),
    log,
    signal: context.signal,
  });
  context.started({ name: 'PostgreSQL', stop: postgres.stop, exited: postgres.exited });
  await postgres.ensureDatabase(DATABASE);
  const databaseUrls = {
    owner: postgres.url(DATABASE),
    api: postgres.url(DATABASE, { user: 'agent_email_api_login', password: apiPassword }),
    worker: postgres.url(DATABASE, { user: 'agent_email_worker_login', password: workerPassword }),
  };
  const { applied } = await migrate({
    migrationUrl: databaseUrls.owner,
    apiUrl: databaseUrls.api,
    workerUrl: databaseUrls.worker,
  });
  const migrated = applied.length === 0 ? 'schema up to date' : 'schema migrated';
  log(`PostgreSQL is ready (${migrated})`);
  return { databaseUrls, seed: await seed(context, databaseUrls.worker) };
}

/** The keys exist in plain text only when they are created, so they are written to a file first. */
async function seed(
  { settings, folder, log }: DependencyContext,
  workerUrl: string,
): Promise<Dependencies['seed']> {
  const database = createDatabase({ url: workerUrl, poolSize: 2 });
  try {
    const created = await createFirstOrganization(database, {
      organizationName: 'First organization',
      ownerEmail: settings.ownerEmail,
    });
    if (created) {
      folder.writeSeed(created);
      log('Created the first organization, its owner and its keys');
    }
    const kept = folder.readSeed();
    if (!kept)
      throw new Error(
        'The database has an organization, but seed.json with its keys is missing. "npm start -- --reset" deletes all data and starts over.',
      );
    if (kept.staff) return { ...kept, staff: kept.staff };
    const staff = await addStaffMember(database, {
      email: settings.staffEmail,
      role: 'admin',
      totp: { secretBox: createSecretBox(folder.secrets().encryptionKey), issuer: 'localhost' },
    });
    folder.writeSeed({ ...kept, staff });
    log('Created a staff member for the console');
    return { ...kept, staff };
  } finally {
    await database.close();
  }
}

async function startStorage({ settings, folder, log, started }: DependencyContext): Promise<S3Server> {
  const s3 = await startS3({ directory: folder.s3, port: settings.ports.s3, bucket: 'agent-email' });
  started({ name: 'S3 server', stop: s3.stop });
  log('S3 server is ready');
  return s3;
}

/** Events go to the API, which starts later: until then they wait. */
async function startBilling({ settings, log, started }: DependencyContext): Promise<Dependencies['stripe']> {
  if (!settings.hasStripeStandIn) return {};
  const secret = 'whsec_stand_in';
  const standIn = await startStripeStandIn({
    port: settings.ports.stripe,
    prices: STAND_IN_PRICES,
    webhook: { url: `http://127.0.0.1:${settings.ports.api}/billing/webhook`, secret },
    file: join(settings.dataDir, STRIPE_STAND_IN_FILE),
  });
  started({ name: 'Stand-in for Stripe', stop: standIn.close });
  log(`Stand-in for Stripe is ready at ${standIn.url}: no money moves`);
  return {
    STRIPE_SECRET_KEY: 'sk_test_stand_in',
    STRIPE_WEBHOOK_SECRET: secret,
    STRIPE_API_BASE: standIn.url,
    STRIPE_PRICES_DEVELOPER: 'price_developer',
    STRIPE_PRICES_BUSINESS: 'price_business',
    STRIPE_PRICES_ENTERPRISE: 'price_enterprise',
    STRIPE_METERED_PRICES: 'messages_sent:price_messages',
  };
}

async function startWorkflowServer(context: DependencyContext): Promise<Dependencies['temporal']> {
  const { settings, folder, log } = context;
  if (settings.temporalAddress) {
    log(`Using the Temporal server at ${settings.temporalAddress}`);
    return { address: settings.temporalAddress, uiUrl: undefined };
  }
  const executable = await findTemporalCli({
    cacheDir: settings.cacheDir,
    environment: settings.environment,
    log,
    signal: context.signal,
  });
  const temporal: TemporalServer = await startTemporal({
    executable,
    port: settings.ports.temporal,
    uiPort: settings.ports.temporalUi,
    databaseFile: folder.temporalDatabase,
    logFile: folder.logFile('temporal'),
    pidFile: folder.pidFile('temporal'),
    signal: context.signal,
  });
  context.started({ name: 'Temporal', stop: temporal.stop, exited: temporal.exited });
  log('Temporal is ready');
  return { address: temporal.address, uiUrl: temporal.uiUrl };
}

async function startMailServers({
  settings,
  folder,
  log,
  signal,
  started,
}: DependencyContext): Promise<MailUi> {
  const mailUi = await startMailUi({
    directory: folder.mailUi,
    webPort: settings.ports.mailUi,
    logFile: folder.logFile('mail-ui'),
    pidFile: folder.pidFile('mail-ui'),
    signal,
  });
  started({ name: 'Mail UI', stop: mailUi.stop, exited: mailUi.exited });
  const relay: Relay = await startRelay({
    port: settings.ports.relay,
    directory: folder.spool,
    serviceDomains: [settings.mailDomain, settings.bounceDomain],
    feedbackAddress: `complaints@${settings.bounceDomain}`,
    inbound: { host: '127.0.0.1', port: settings.ports.inboundSmtp },
    mailUi,
    log,
  });
  started({ name: 'Mail relay', stop: relay.stop });
  log('Mail relay and mail UI are ready');
  return mailUi;
}
