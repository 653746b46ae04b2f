// A stand-in for a site where people sign up: it mails a link, and who opens it has confirmed the address.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { AgentEmail } from 'agent-email';

const port = Number(process.env.SITE_PORT ?? 4810);
const client = new AgentEmail();
const inbox = await client.inboxes.create({ client_id: 'example-site', display_name: 'The site' });
/** Addresses by the token of their link. */
const unconfirmed = new Map<string, string>();
const confirmed = new Set<string>();

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', `http://${request.headers.host}`);
  const email = searchParams.get('email');
  if (request.method === 'POST' && pathname === '/sign-up' && email) {
    const token = randomUUID();
    unconfirmed.set(token, email);
    await client.messages.send(inbox.id, {
      to: [email],
      subject: 'Confirm your address',
      text_body: `Welcome! Confirm your address here: http://127.0.0.1:${port}/confirm?token=${token}`,
    });
    return response.writeHead(202).end('We have sent you a link.');
  }
  const owner = unconfirmed.get(searchParams.get('token') ?? '');
  if (pathname === '/confirm' && owner) {
    confirmed.add(owner);
    return response.writeHead(200).end(`${owner} is confirmed.`);
  }
  if (pathname === '/account' && email) return response.writeHead(confirmed.has(email) ? 200 : 404).end();
  return response.writeHead(404).end();
});
server.listen(port, '127.0.0.1', () => console.log(`The site is at http://127.0.0.1:${port}`));
