import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import nodemailer from 'nodemailer';
import { Webhook } from 'standardwebhooks';
import { addDemoData, dismissAlarms } from './demo-data.ts';
import type { FirstRun } from './first-run.ts';

const USAGE = `npm run demo -- [--first-run FILE]
  Runs the whole story against a running service (npm start): inbox, draft, send, delivery, a person's reply,
  thread, signed webhooks.`;
const TIMEOUT_MS = 60_000;
/** Of the receiver that answers 503. */
const FAILING_PATH = '/warehouse';
const PERSON = 'ada@people.example';

interface Delivered {
  headers: IncomingHttpHeaders;
  body: string;
}

/** The fields of API responses that the demo reads. Each response has those of its resource. */
interface Answer {
  /** Of a draft that waits for approval. */
  send_status?: string;
  id: string;
  email: string;
  url: string;
  secret: string;
  status: string;
  subject: string;
  thread_id: string;
  rfc_message_id: string;
  delivered_at: string;
  message_count: number;
}

interface EventEnvelope {
  id: string;
  type: string;
  data: Record<string, unknown> & { message_id?: string };
}

let steps = 0;

try {
  const { values } = parseArgs({ options: { 'first-run': { type: 'string' }, help: { type: 'boolean' } } });
  if (values.help) console.log(USAGE);
  else await demo(resolve(values['first-run'] ?? '.data/first-run.json'));
} catch (error) {
  const reason = (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, ' ');
  console.error(steps === 0 ? reason : `Failed after step ${steps}: ${reason}`);
  process.exitCode = 1;
}

async function demo(firstRunFile: string): Promise<void> {
  const service = readFirstRun(firstRunFile);
  const call = caller(service);
  const receiver = await startReceiver();
  try {
    const inbox = await call('POST', '/inboxes', { display_name: 'Demo agent' });
    step('An inbox', `${inbox.email}  (${inbox.id})`);

    await dismissAlarms(service);
    const endpoint = await call('POST', '/webhooks/endpoints', {
      url: receiver.url,
      events: ['message.sent', 'message.delivered', 'message.received'],
      inbox_ids: [inbox.id],
    });
    step('A webhook endpoint', `${endpoint.url}  (${endpoint.id})`);

    const draft = await call('POST', `/inboxes/${inbox.id}/drafts`, { to: [{ email: PERSON, name: 'Ada' }] });
    await call('PATCH', `/drafts/${draft.id}`, {
      subject: 'The report you asked for',
      text_body: 'Dear Ada,\n\nthe report is ready. Shall I send it?\n\nYour agent',
    });
    step('A draft, written in two calls', draft.id);

    const sent = await call('POST', `/drafts/${draft.id}/send`);
    if (sent.send_status === 'pending_approval')
      throw new Error(
        'The organization requires approval of what keys send: turn require_send_approval off first.',
      );
    step('Sent', `${sent.id}  ${sent.status}`);
    expectEvent(await receiver.next('message.sent'), endpoint.secret, sent.id, 'Accepted by the relay');
    expectEvent(await receiver.next('message.delivered'), endpoint.secret, sent.id, 'Reported as delivered');
    const after = await call('GET', `/messages/${sent.id}`);
    step('The message', `${after.status}, delivered at ${after.delivered_at}`);

    await replyAsPerson(service, inbox.email, sent);
    step('Ada replies', `by SMTP to ${service.inbound_smtp.host}:${service.inbound_smtp.port}`);
    const received = expectEvent(
      await receiver.next('message.received'),
      endpoint.secret,
      undefined,
      'Her reply arrives',
    );
    if (received.data.extracted_text !== 'Yes, please send it.') {
      throw new Error(`extracted_text is ${JSON.stringify(received.data.extracted_text)}`);
    }
    step('Her reply without the quote', String(received.data.extracted_text));

    const thread = await call('GET', `/threads/${sent.thread_id}`);
    if (thread.message_count !== 2) throw new Error(`The thread has ${thread.message_count} messages, not 2`);
    step('The thread', `${thread.id}: "${thread.subject}", ${thread.message_count} messages`);

    console.log(`\nEverything worked. The messages: ${service.mail_ui}`);
    if (service.temporal_ui) console.log(`The workflows: ${service.temporal_ui}`);
    if (await addDemoData(service, receiver))
      console.log('The console has the mail of a small shop to look at.');
    const { owner } = service;
    console.log(`The console: ${service.sign_in_url}  (${owner.email}  ${owner.password})`);
  } finally {
    receiver.stop();
  }
}

function readFirstRun(file: string): FirstRun {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as FirstRun;
  } catch (cause) {
    throw new Error(
      `${file} does not exist: start the service first (npm start) and wait until it is ready.`,
      {
        cause,
      },
    );
  }
}

function step(what: string, detail: string): void {
  steps += 1;
  console.log(`${String(steps).padStart(2)}. ${what.padEnd(36)} ${detail}`);
}

function caller({ base_url, agent_key }: FirstRun) {
  return async (method: string, path: string, body?: object): Promise<Answer> => {
    const response = await fetch(`${base_url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${agent_key}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    }).catch((error: Error) => {
      const { code = error.message } = (error.cause ?? {}) as NodeJS.ErrnoException;
      throw new Error(`${base_url} does not respond (${code}): start the service first (npm start).`);
    });
    const answer = await response.json();
    if (!response.ok)
      throw new Error(`${method} ${path} returned ${response.status}: ${JSON.stringify(answer)}`);
    return answer as Answer;
  };
}

/** A webhook receiver as a customer would write one. It keeps requests until `next` takes them. */
async function startReceiver() {
  const arrived: Delivered[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      arrived.push({ headers: request.headers, body: Buffer.concat(chunks).toString('utf8') });
      if (request.url === FAILING_PATH)
        response.writeHead(503, { 'content-type': 'text/plain' }).end('The warehouse is closed for repairs.');
      else response.writeHead(204).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    failingUrl: `http://127.0.0.1:${port}${FAILING_PATH}`,
    stop: () => server.close().closeAllConnections(),
    async next(type: string): Promise<Delivered> {
      const deadline = Date.now() + TIMEOUT_MS;
      for (;;) {
        const index = arrived.findIndex(({ body }) => (JSON.parse(body) as EventEnvelope).type === type);
        const [found] = index < 0 ? [] : arrived.splice(index, 1);
        if (found) return found;
        if (Date.now() > deadline) throw new Error(`No ${type} within ${TIMEOUT_MS / 1000} s`);
        await new Promise((done) => setTimeout(done, 50));
      }
    },
  };
}

/** Verifies both signatures: the service's own, and the Standard Webhooks one with its public library. */
function expectEvent(
  { headers, body }: Delivered,
  secret: string,
  messageId: string | undefined,
  what: string,
): EventEnvelope {
  const timestamp = String(headers['x-service-timestamp']);
  const signature = Buffer.from(String(headers['x-service-signature']), 'hex');
  const expected = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest();
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) {
    throw new Error(`The signature of ${body} is wrong`);
  }
  new Webhook(secret).verify(body, headers as Record<string, string>);
  const event = JSON.parse(body) as EventEnvelope;
  if (messageId !== undefined && event.data.message_id !== messageId)
    throw new Error(`${event.type} belongs to another message`);
  step(what, `${event.type}  (${event.id}, signature verified)`);
  return event;
}

async function replyAsPerson({ inbound_smtp }: FirstRun, to: string, original: Answer): Promise<void> {
  const transport = nodemailer.createTransport({ ...inbound_smtp, secure: false, ignoreTLS: true });
  await transport.sendMail({
    from: `Ada <${PERSON}>`,
    to,
    subject: `Re: ${original.subject}`,
    inReplyTo: `<${original.rfc_message_id}>`,
    references: `<${original.rfc_message_id}>`,
    text: 'Yes, please send it.\n\nOn Sat, Nov 21, 2026 at 9:00 AM Demo agent wrote:\n> Dear Ada,\n>\n> the report is ready. Shall I send it?\n',
  });
  transport.close();
}
