// Answers the mail of a support inbox. What it cannot answer, and mail that looks like an attack, it leaves to people.
// If the organization wants a person to approve mail of agents, it waits for the decision before it goes on.
import { AgentEmail, type AgentMessage } from 'agent-email';

const client = new AgentEmail(); // reads AGENT_EMAIL_API_KEY and AGENT_EMAIL_BASE_URL

/** In place of a model: what the agent knows, by a word of the question. */
const ANSWERS: Record<string, string> = {
  refund: 'We refund within 14 days. Please send us the number of your order.',
  opening: 'We are open from Monday to Friday, from nine to five.',
  deliver: 'We deliver within three days.',
};
const DONE = 'answered';
const FOR_PEOPLE = 'needs-a-person';

const inbox = await client.inboxes.create({ client_id: 'example-support', display_name: 'Support' });
const stream = client.events.stream({ types: ['message.received'], inbox_id: inbox.id });
process.once('SIGINT', () => stream.close());
process.once('SIGTERM', () => stream.close());
console.log(`Answering mail to ${inbox.email}`);

// What arrived while the agent was not running, and then what arrives from now on.
await stream.open();
await handleOpenMessages();
for await (const event of stream) {
  if (event.type === 'message.received')
    await handle(await client.messages.get(event.data.message_id, { view: 'agent' }));
}

async function handleOpenMessages(): Promise<void> {
  for await (const message of client.messages.list(inbox.id, {
    direction: 'inbound',
    view: 'agent',
    order: 'asc',
  }))
    await handle(await client.messages.get(message.id, { view: 'agent' }));
}

async function handle(message: AgentMessage): Promise<void> {
  if ([DONE, FOR_PEOPLE].some((label) => message.labels?.includes(label))) return;
  const text = findAnswer(message);
  if (text) await answer(message, text);
  await client.messages.addLabels(message.id, { labels: [text ? DONE : FOR_PEOPLE] });
  console.log(`"${message.subject}" of ${message.from.email}: ${text ? DONE : FOR_PEOPLE}`);
}

function findAnswer({ subject = '', text = '', injection, signals = [] }: AgentMessage): string | null {
  // An out-of-office notice needs no answer, and instructions to agents need a person.
  if (signals.includes('automated') || (injection && injection.level !== 'none')) return null;
  const question = `${subject} ${text}`.toLowerCase();
  const [, found = null] = Object.entries(ANSWERS).find(([word]) => question.includes(word)) ?? [];
  return found;
}

async function answer(message: AgentMessage, text: string): Promise<void> {
  // With this key the answer is sent once, even if the agent ends before it has set the label.
  const options = { idempotencyKey: `support-${message.id}` };
  const sent = await client.messages.reply(message.id, { text_body: text }, options);
  if (sent.object === 'message') return;
  console.log(`"${message.subject}" waits for approval`);
  const { outcome, note } = await client.waitForDecision(sent.id, { timeoutSeconds: 86_400 });
  console.log(`"${message.subject}": ${outcome}${note ? ` (${note})` : ''}`);
}
