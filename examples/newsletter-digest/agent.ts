// Mails one digest a day of the newsletters that arrived in its inbox. Run it from cron: the same day again sends nothing.
import { AgentEmail, type AgentMessage } from 'agent-email';

const READER = process.env.DIGEST_TO ?? 'ada@people.example';
const DAY_MS = 86_400_000;

const client = new AgentEmail(); // reads AGENT_EMAIL_API_KEY and AGENT_EMAIL_BASE_URL

const inbox = await client.inboxes.create({ client_id: 'example-newsletters', display_name: 'Newsletters' });
console.log(`Subscribe to newsletters with ${inbox.email}`);

const bySender = new Map<string, AgentMessage[]>();
const after = new Date(Date.now() - DAY_MS).toISOString();
for await (const message of client.messages.list(inbox.id, {
  direction: 'inbound',
  view: 'agent',
  after,
  order: 'asc',
})) {
  // A list of messages has only the links that confirm something, so each is read by itself.
  const whole = await client.messages.get(message.id, { view: 'agent' });
  if (!isNewsletter(whole)) continue;
  const sender = whole.from.name || whole.from.email;
  bySender.set(sender, [...(bySender.get(sender) ?? []), whole]);
}

if (bySender.size === 0) console.log('No newsletter arrived in the last day');
else await sendDigest();

/** Newsletters say how to leave them. */
function isNewsletter({ links = [] }: AgentMessage): boolean {
  return links.some(({ kind }) => kind === 'unsubscribe');
}

async function sendDigest(): Promise<void> {
  const day = new Date().toISOString().slice(0, 10);
  const sections = [...bySender].map(
    ([sender, messages]) => `${sender}\n${messages.map(summarize).join('\n')}`,
  );
  const digest = {
    to: [READER],
    subject: `Newsletters of ${day}`,
    text_body: `${sections.join('\n\n')}\n`,
  };
  // One key a day: a second run on that day changes nothing, even if more has arrived.
  const options = { idempotencyKey: `digest-${inbox.id}-${day}` };
  const sent = await client.messages.send(inbox.id, digest, options).catch((error: { code?: string }) => {
    if (error.code === 'idempotency_key_reused') return null;
    throw error;
  });
  if (!sent) return console.log('The digest of today has been sent before');
  if (sent.object === 'draft') return console.log('The digest waits for the approval of a person');
  const { status } = await client.waitForOutcome(sent.id);
  console.log(`The digest of ${bySender.size} newsletters to ${READER}: ${status}`);
}

/** In place of a model: the subject and the first sentence. */
function summarize({ subject = '(no subject)', text = '' }: AgentMessage): string {
  const [sentence = ''] = text
    .replace(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.!?]) /);
  return `- ${subject}: ${sentence.slice(0, 200)}`;
}
