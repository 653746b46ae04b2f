import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import type { ParsedMail } from 'mailparser';
import nodemailer, { type SendMailOptions } from 'nodemailer';
import type { Permission } from '../../domain/identity/permissions.ts';
import { newId } from '../../platform/ids.ts';
import { findArrived } from './arrived-mail.ts';
import { BashSession } from './bash-session.ts';
import { apiClient, type Call } from './client.ts';
import { type DnsServer, startDnsServer } from './dns-server.ts';
import { startFurtherApi, terminate } from './isolated-service.ts';
import { createKey, createOrganization } from './organizations.ts';
import { sharedService } from './service.ts';
import { createTestSession } from './sessions.ts';
import { connect } from './test-app.ts';
import { WebhookReceiver } from './webhook-receiver.ts';

/** What docs/recipes.md needs to run: a bash with the variables of its setup, and everyone else who takes part. */
export interface RecipeRun {
  bash: BashSession;
  /** The variable DOMAIN. */
  domain: string;
  /** Answers for the domain. */
  dns: DnsServer;
  receiver: WebhookReceiver;
  /** With the key of the recipes. */
  call: Call;
  /** With the session of an owner. */
  person: Call;
  /** With another key of the organization. */
  keyWith(permissions: Permission[], inboxId?: string): Promise<Call>;
  /** The value of a variable of the bash. */
  read(name: string): Promise<string>;
  /** Sends by SMTP to the inbox of the recipes. */
  deliver(mail: SendMailOptions): Promise<void>;
  /** What the SMTP server of the recipient got from the inbox. */
  arrived(subject: string): Promise<ParsedMail>;
  stop(): Promise<void>;
}

/** Takes part in the shared service, with an organization of its own and an API that asks a name server of its own. */
export async function startRecipeRun(): Promise<RecipeRun> {
  const service = sharedService();
  const database = connect(service.database_url);
  const organization = await createOrganization(database);
  const { organizationId, productionEnvironmentId: environmentId } = organization;
  const owner = await createTestSession(database, organization.ownerId);
  const dns = await startDnsServer();
  const settings = parseEnv(readFileSync(join(service.dataDir, 'api.env'), 'utf8'));
  const api = await startFurtherApi({
    ...settings,
    DNS_SERVERS: dns.address,
    LOG_LEVEL: 'warn',
    // So low that a slow machine reaches it, too.
    RATE_LIMIT_PER_SECOND: '15',
  });
  const receiver = new WebhookReceiver();
  const domain = `${newId('domain').replace('_', '-')}.example`;
  const bash = new BashSession({
    BASE_URL: api.baseUrl,
    API_KEY: organization.token,
    WEBHOOK_URL: await receiver.start(),
    DOMAIN: domain,
  });
  const callWith = (token: string) => apiClient({ base_url: api.baseUrl }, token);
  return {
    bash,
    domain,
    dns,
    receiver,
    call: callWith(organization.token),
    person: callWith(owner.token),
    async keyWith(permissions, inboxId) {
      const key = { organizationId, environmentId, inboxId: inboxId ?? null, permissions };
      return callWith((await createKey(database, key)).token);
    },
    read: (name) => bash.read(name),
    async deliver(mail) {
      const transport = nodemailer.createTransport({
        ...service.inbound_smtp,
        secure: false,
        ignoreTLS: true,
      });
      const to = await bash.read('ADDRESS');
      await transport.sendMail({ from: 'Ada <ada@people.example>', to, ...mail });
      transport.close();
    },
    arrived: async (subject) => findArrived(service.mail_ui, await bash.read('ADDRESS'), subject),
    async stop() {
      await bash.stop();
      await receiver.stop();
      await terminate(api.child);
      await dns.stop();
      await database.close();
    },
  };
}
