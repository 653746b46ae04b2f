// Signs up at a site with an address of its own, and confirms the address by the link that the site mails.
import { AgentEmail } from 'agent-email';

const SITE = process.env.SITE_URL ?? 'http://127.0.0.1:4810';

const client = new AgentEmail(); // reads AGENT_EMAIL_API_KEY and AGENT_EMAIL_BASE_URL

// Again with the same client_id it is the same inbox: the agent may be started as often as you like.
const inbox = await client.inboxes.create({ client_id: 'example-sign-up', display_name: 'Sign-up agent' });
console.log(`Signing up as ${inbox.email}`);

// What arrived before does not count.
const { data } = await client.messages.list(inbox.id, { limit: 1 });
const [newest] = data;

const answer = await fetch(`${SITE}/sign-up?email=${encodeURIComponent(inbox.email)}`, { method: 'POST' });
if (!answer.ok) throw new Error(`The site answered ${answer.status}`);

// Anyone can write to the inbox, so only a link to the site itself is opened.
const link = await findLink(newest?.id);
console.log(`Opening ${link}`);
const confirmation = await fetch(link, { redirect: 'error' });
if (!confirmation.ok) throw new Error(`The link answered ${confirmation.status}`);
console.log(`Confirmed: ${await confirmation.text()}`);

/** Waits for messages until one has a link to the site. */
async function findLink(after: string | undefined): Promise<URL> {
  for (let since = after; ; ) {
    const message = await client.waitForMessage(inbox.id, { view: 'agent', since }, { timeoutSeconds: 120 });
    since = message.id;
    for (const { url, kind } of message.links ?? [])
      if (kind === 'verify' && new URL(url).origin === new URL(SITE).origin) return new URL(url);
    console.log(`"${message.subject}" has no link to the site`);
  }
}
