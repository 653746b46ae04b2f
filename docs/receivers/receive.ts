// A webhook receiver. Run: WEBHOOK_SECRET=whsec_… PORT=8080 node receive.ts (Node 24, no dependencies)
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';

const TOLERANCE_SECONDS = 300;

/** Returns whether the service sent the body, unchanged and recently. `body` is the raw body, before any parsing. */
function isGenuine(secret: string, headers: IncomingHttpHeaders, body: Buffer): boolean {
  const id = String(headers['webhook-id'] ?? '');
  const timestamp = String(headers['webhook-timestamp'] ?? '');
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  // During a secret rotation there are several signatures, separated by spaces; one valid signature is enough.
  return String(headers['webhook-signature'] ?? '')
    .split(' ')
    .filter((signature) => signature.startsWith('v1,'))
    .map((signature) => Buffer.from(signature.slice(3), 'base64'))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
}

const secret = process.env.WEBHOOK_SECRET ?? '';
if (!secret.startsWith('whsec_')) throw new Error('Set WEBHOOK_SECRET to the secret of the endpoint');

// An event may arrive more than once. Store its id with your data, in the transaction that handles the event.
const handled = new Set<string>();

const server = createServer(async (request, response) => {
  const body = await buffer(request);
  if (!isGenuine(secret, request.headers, body)) return response.writeHead(400).end();
  const event = JSON.parse(body.toString('utf8')) as { id: string; type: string };
  if (!handled.has(event.id)) {
    handled.add(event.id);
    console.log(`${event.id} ${event.type}`);
  }
  // Respond immediately and work later: after 15 seconds the attempt counts as failed and the event is sent again.
  return response.writeHead(204).end();
});
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => console.log('listening'));
