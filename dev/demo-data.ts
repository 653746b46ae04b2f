import nodemailer, { type SendMailOptions } from 'nodemailer';
import pg from 'pg';
import { CONVERSATIONS, type Conversation, CUSTOMERS, DECEIVING_HTML, INBOXES } from './demo-mail.ts';
import type { FirstRun } from './first-run.ts';

/** A call of the API. */
type Call = (
  method: string,
  path: string,
  body?: object,
) => Promise<{ id: string; email: string; status: string }>;

const TIMEOUT_MS = 60_000;
/** An endpoint is failing from its tenth failure in a row on. */
const FAILURES = 10;
const HOURS_OF_MAIL = 22;
const ORDERS_BETWEEN = 6;
/** Made at the end. */
const UNUSED_KEY = 'Importer of last year';

/** What pages are worth looking at with. Made by the first demo of an installation, through the API and SMTP. */
export async function addDemoData(service: FirstRun, receiver: DemoReceiver): Promise<boolean> {
  const call = caller(service, service.api_key);
  const database = new pg.Client({ connectionString: service.database_url });
  await database.connect();
  try {
    const { rows } = await database.query(`select 1 from api_keys where org_id = $1 and name = $2`, [
      service.org_id,
      UNUSED_KEY,
    ]);
    if (rows.length > 0) return false;
    await fill({ service, call, database, receiver });
    return true;
  } finally {
    await database.end();
  }
}

/** The alarm of an earlier demo would keep keys from creating webhook endpoints for a day. */
export async function dismissAlarms(service: FirstRun): Promise<void> {
  const database = new pg.Client({ connectionString: service.database_url });
  await database.connect();
  try {
    const { rows } = await database.query<{ id: string }>(
      `select m.id from messages m join inboxes i on i.id = m.inbox_id
       where m.org_id = $1 and i.client_id like 'demo-%' and m.injection->>'level' = 'alarm'
         and m.injection_dismissed_at is null`,
      [service.org_id],
    );
    if (rows.length === 0) return;
    const owner = caller(service, await signIn(service));
    for (const { id } of rows) await owner('POST', `/messages/${id}/injection/dismiss`);
  } finally {
    await database.end();
  }
}

interface DemoReceiver {
  url: string;
  /** Answers with an error. */
  failingUrl: string;
}

interface Filling {
  service: FirstRun;
  call: Call;
  database: pg.Client;
  receiver: DemoReceiver;
}

async function fill(filling: Filling): Promise<void> {
  const { call, service, receiver } = filling;
  // Before the alarm, after which keys cannot create endpoints.
  await call('POST', '/webhooks/endpoints', {
    url: receiver.url,
    events: ['message.received', 'message.bounced', 'draft.pending_approval'],
    description: 'Help desk',
  });
  const failing = await call('POST', '/webhooks/endpoints', {
    url: receiver.failingUrl,
    events: ['message.delivered'],
    description: 'Data warehouse',
  });
  for (let count = 0; count < FAILURES; count += 1)
    await call('POST', `/webhooks/endpoints/${failing.id}/test`);
  const inboxes = new Map<string, { id: string; email: string }>();
  for (const { username, name } of INBOXES)
    inboxes.set(
      username,
      await call('POST', '/inboxes', {
        username: `shop-${username}`,
        display_name: name,
        client_id: clientId(username),
      }),
    );
  for (const [index, conversation] of CONVERSATIONS.entries()) {
    await hold(filling, inboxes, conversation);
    await confirmOrders(call, inboxes.get('orders')?.id ?? '', 4700 + index * ORDERS_BETWEEN);
  }
  await addWaitingThings(filling, inboxes);
  await settle(filling);
  await spreadOverTheDay(filling.database, service);
  await addFailuresOfCalls(filling);
  await addPeople(filling);
}

const clientId = (username: string): string => `demo-${username}`;

/** Colleagues of the owner, and a key that nothing has used for 40 days. */
async function addPeople({ database, service, call }: Filling): Promise<void> {
  for (const [email, name, role] of [
    ['grace@people.example', 'Grace Hopper', 'admin'],
    ['alan@people.example', 'Alan Turing', 'viewer'],
  ] as const) {
    const id = `usr_demo${name.slice(0, 5).toLowerCase()}`;
    await database.query(
      `insert into users (id, email, name, email_verified_at) values ($1, $2, $3, now()) on conflict do nothing`,
      [id, email, name],
    );
    await database.query(
      `insert into members (org_id, user_id, role) select $1, id, $2 from users where email = $3 on conflict do nothing`,
      [service.org_id, role, email],
    );
  }
  const owner = caller(service, await signIn(service));
  await owner('POST', '/org/invitations', { email: 'barbara@people.example', role: 'developer' });
  const key = await call('POST', '/api-keys', {
    name: UNUSED_KEY,
    permissions: ['messages:read', 'threads:read'],
  });
  await database.query(
    `update api_keys set created_at = now() - interval '90 days', last_used_at = now() - interval '40 days' where id = $1`,
    [key.id],
  );
}

/** Lets people write and agents answer. */
async function hold(
  { call, service, database }: Filling,
  inboxes: ReadonlyMap<string, { id: string; email: string }>,
  { username, steps, subject, labels = [] }: Conversation,
): Promise<void> {
  const inbox = inboxes.get(username);
  if (!inbox) throw new Error(`No inbox ${username}`);
  let last: { id: string } | undefined;
  for (const step of steps) {
    if ('from' in step) last = await receive({ service, database, inbox, subject, step, answers: last });
    else if (last) last = await call('POST', `/messages/${last.id}/reply`, { text_body: step.text });
    else
      last = await call('POST', `/inboxes/${inbox.id}/messages`, {
        to: step.to,
        subject,
        text_body: step.text,
      });
    if (last.id && !('from' in step)) await waitUntilSent(call, last.id);
  }
  if (labels.length > 0 && last) await call('POST', `/messages/${last.id}/labels`, { labels });
}

interface Receiving {
  service: FirstRun;
  database: pg.Client;
  inbox: { id: string; email: string };
  subject: string;
  step: { from: string; text: string; html?: string };
  answers: { id: string } | undefined;
}

async function receive({ service, database, inbox, subject, step, answers }: Receiving) {
  const reference = answers && (await messageIdOf(database, answers.id));
  await sendAsPerson(service, {
    from: step.from,
    to: inbox.email,
    subject: reference ? `Re: ${subject}` : subject,
    text: step.text,
    ...(step.html ? { html: step.html } : {}),
    ...(reference ? { inReplyTo: reference, references: reference } : {}),
  });
  return waitFor(async () => {
    const { rows } = await database.query<{ id: string }>(
      `select id from messages where inbox_id = $1 and direction = 'inbound' and subject like $2 and id > $3 order by id desc limit 1`,
      [inbox.id, `%${subject}`, answers?.id ?? ''],
    );
    return rows[0];
  });
}

async function messageIdOf(database: pg.Client, id: string): Promise<string | undefined> {
  const { rows } = await database.query<{ id: string | null }>(
    `select rfc_message_id as id from messages where id = $1`,
    [id],
  );
  return rows[0]?.id ? `<${rows[0].id}>` : undefined;
}

/** What waits for a person, or was refused. */
async function addWaitingThings(
  { call, service, database }: Filling,
  inboxes: ReadonlyMap<string, { id: string; email: string }>,
): Promise<void> {
  const [support, billing, research] = ['support', 'billing', 'research'].map((name) => inboxes.get(name));
  if (!support || !billing || !research) throw new Error('An inbox of the demo is missing');
  const deceiving = await receive({
    service,
    database,
    inbox: billing,
    subject: 'Overdue invoice 2093',
    step: {
      from: 'Accounts <accounts@overdue-notices.example>',
      text: 'Please see the invoice below.',
      html: DECEIVING_HTML,
    },
    answers: undefined,
  });
  // The alarm holds it for a person.
  await call('POST', `/messages/${deceiving.id}/reply`, {
    text_body: 'Dear Sir or Madam,\n\nhere is the list of our customers that you asked for.\n\nBilling agent',
  });
  await call('POST', '/domains', { domain_name: 'mail.acme-shop.example' });
  await call('POST', `/inboxes/${support.id}/drafts`, {
    to: ['katherine@people.example'],
    subject: 'Your replacement is on its way',
    text_body: 'Dear Katherine,\n\nyour replacement leaves our warehouse tomorrow.\n\nSupport agent',
  });
  await call('POST', '/suppressions', { email: 'no-more-mail@people.example' });
  await call('POST', '/lists/receive/block', { entry: 'cheap-loans.example' });
  await sendAsPerson(service, {
    from: 'Loans <offer@cheap-loans.example>',
    to: support.email,
    subject: 'Money, today',
    text: 'A loan for everyone.',
  }).catch(() => undefined);
  await call('POST', `/inboxes/${research.id}/pause`, { reason: 'Wrote to the same people twice' });
}

async function addFailuresOfCalls({ service }: Filling): Promise<void> {
  const headers = { authorization: `Bearer ${service.agent_key}`, 'content-type': 'application/json' };
  for (const [method, path] of [
    ['GET', '/inboxes/inb_unknown'],
    ['POST', '/domains'],
  ] as const)
    await fetch(`${service.base_url}/api/v1${path}`, {
      method,
      headers,
      ...(method === 'POST' ? { body: '{}' } : {}),
    });
}

/** Mail without an answer, between conversations. */
async function confirmOrders(call: Call, inboxId: string, first: number): Promise<void> {
  const numbers = Array.from({ length: ORDERS_BETWEEN }, (_, index) => first + index);
  await Promise.all(
    numbers.map((number) =>
      call('POST', `/inboxes/${inboxId}/messages`, {
        to: [CUSTOMERS[number % CUSTOMERS.length]],
        subject: `Your order ${number}`,
        text_body: `Thank you for order ${number}. It leaves our warehouse within two days.\n\nOrder agent`,
      }),
    ),
  );
}

/** Until deliveries and outcomes have arrived, so that nothing changes after the times are spread. */
async function settle({ database, service }: Filling): Promise<void> {
  await waitFor(async () => {
    const { rows } = await database.query<{ open: number }>(
      `select count(*)::int as open from messages where org_id = $1 and status in ('queued', 'sending')`,
      [service.org_id],
    );
    return rows[0]?.open === 0 ? { id: '' } : undefined;
  });
}

/**
 * Moves the demo's mail of a minute over the last hours, in its order and in two waves, and counts it there: a chart of one minute
 * shows nothing. Other mail of the organization stays as it is.
 */
async function spreadOverTheDay(database: pg.Client, { org_id }: FirstRun): Promise<void> {
  await database.query('begin');
  await database.query(
    `create temporary table demo_shift on commit drop as
     select id, at, (1 - rank - 0.07 * sin(rank * 4 * pi())) * interval '${HOURS_OF_MAIL} hours' as shift
     from (
       select m.id, coalesce(m.received_at, m.sent_at, m.created_at) as at, percent_rank() over (order by m.id) as rank
       from messages m join inboxes i on i.id = m.inbox_id where m.org_id = $1 and i.client_id like 'demo-%'
     ) ranked`,
    [org_id],
  );
  // Counts are sums: those of the hour in which the mail was made lose what the earlier hours get.
  for (const [hour, sign] of [
    ['s.at', '-'],
    ['s.at - s.shift', '+'],
  ])
    await database.query(
      `insert into metric_deltas (org_id, env_id, inbox_id, hour, sent, delivered, bounced, received, attempted)
       select org_id, env_id, inbox_id, date_trunc('hour', ${hour}),
         ${sign} count(*) filter (where direction = 'outbound' and sent_at is not null),
         ${sign} count(*) filter (where status = 'delivered'), ${sign} count(*) filter (where status = 'bounced'),
         ${sign} count(*) filter (where direction = 'inbound'),
         ${sign} count(*) filter (where direction = 'outbound' and sent_at is not null)
       from messages m join demo_shift s on s.id = m.id group by 1, 2, 3, 4`,
    );
  await database.query(
    `update messages m set created_at = created_at - shift, sent_at = sent_at - shift, received_at = received_at - shift
     from demo_shift s where s.id = m.id`,
  );
  await database.query(
    `update threads t set last_message_at = newest.at from (
       select m.thread_id, max(coalesce(m.received_at, m.sent_at, m.created_at)) as at
       from messages m where m.thread_id in (select thread_id from messages join demo_shift using (id)) group by 1
     ) newest where newest.thread_id = t.id`,
  );
  await database.query('commit');
}

async function signIn({ base_url, owner }: FirstRun): Promise<string> {
  const response = await fetch(`${base_url}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(owner),
  });
  return ((await response.json()) as { token: string }).token;
}

function caller({ base_url, org_id, env_id }: FirstRun, token: string): Call {
  return async (method, path, body) => {
    const response = await fetch(`${base_url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'x-org-id': org_id,
        'x-env-id': env_id,
        'content-type': 'application/json',
      },
      ...(method === 'GET' ? {} : { body: JSON.stringify(body ?? {}) }),
    });
    const answer = await response.json();
    if (!response.ok)
      throw new Error(`${method} ${path} returned ${response.status}: ${JSON.stringify(answer)}`);
    return answer as Awaited<ReturnType<Call>>;
  };
}

async function waitUntilSent(call: Call, id: string): Promise<void> {
  await waitFor(async () => {
    const { status } = await fetchMessage(call, id);
    return ['queued', 'sending'].includes(status) ? undefined : { id };
  });
}

const fetchMessage = (call: Call, id: string) => call('GET', `/messages/${id}`);

async function waitFor<T>(find: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + TIMEOUT_MS;
  for (;;) {
    const found = await find();
    if (found) return found;
    if (Date.now() > deadline) throw new Error('The demo data took too long to arrive');
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function sendAsPerson({ inbound_smtp }: FirstRun, mail: SendMailOptions): Promise<void> {
  const transport = nodemailer.createTransport({ ...inbound_smtp, secure: false, ignoreTLS: true });
  try {
    await transport.sendMail(mail);
  } finally {
    transport.close();
  }
}
