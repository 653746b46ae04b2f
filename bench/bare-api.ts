import { createHash, randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import Fastify from 'fastify';
import pg from 'pg';

/**
 * The baseline: Fastify and pg, with the statements that a hand-written server needs for the same responses. Like the
 * service, each request looks up its key, and runs in one transaction that sets the organization. There is no
 * validation, rate limit, metering, response schema or log.
 */
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
const connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS });
const temporal = new Client({ connection });
const app = Fastify();

interface Call {
  client: pg.PoolClient;
  org: string;
  env: string;
}

async function run(
  authorization: string | undefined,
  work: (call: Call) => Promise<unknown>,
): Promise<unknown> {
  const token = authorization?.slice('Bearer '.length) ?? '';
  const hash = createHash('sha256').update(token).digest();
  const { rows } = await pool.query('select * from find_api_key($1, $2, null)', [hash, null]);
  const { org_id: org, env_id: env } = rows[0];
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query(`select set_config('app.org_id', $1, true)`, [org]);
    const result = await work({ client, org, env });
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

const SUMMARY = `id, org_id, env_id, inbox_id, thread_id, direction, status, status_detail, from_email, from_name, "to", cc, bcc,
  reply_to, subject, preview, labels, has_attachments, rfc_message_id, in_reply_to, reference_ids, provider_message_id,
  size_bytes, authentication, spam, automated, signals, parse_error, created_at, updated_at, queued_at, sent_at,
  delivered_at, bounced_at, complained_at, received_at`;

async function withRecipients({ client }: Call, messages: { id: string }[]): Promise<unknown[]> {
  const ids = messages.map(({ id }) => id);
  const { rows } = await client.query(
    'select * from message_recipients where message_id = any($1) order by position',
    [ids],
  );
  const byMessage = Map.groupBy(rows, ({ message_id }) => message_id);
  return messages.map((message) => ({
    ...message,
    recipients: byMessage.get(message.id) ?? [],
    attachments: [],
  }));
}

async function requireInbox({ client, org, env }: Call, id: string): Promise<void> {
  const { rows } = await client.query('select * from inboxes where id = $1 and org_id = $2 and env_id = $3', [
    id,
    org,
    env,
  ]);
  if (!rows[0]) throw new Error('no such inbox');
}

function page(rows: unknown[], limit: number) {
  return { data: rows.slice(0, limit), has_more: rows.length > limit, next_cursor: null };
}

interface Route {
  Params: { id: string };
  Querystring: { limit: string };
  Body: { to: unknown; subject: string; text_body: string };
}

app.get<Route>('/api/v1/messages/:id', ({ headers, params }) =>
  run(headers.authorization, async (call) => {
    const { rows } = await call.client.query(
      `select ${SUMMARY}, text_body, html_body, extracted_text, headers from messages
       where id = $1 and org_id = $2 and env_id = $3`,
      [params.id, call.org, call.env],
    );
    return (await withRecipients(call, rows))[0];
  }),
);

app.get<Route>('/api/v1/inboxes/:id/messages', ({ headers, params, query }) =>
  run(headers.authorization, async (call) => {
    await requireInbox(call, params.id);
    const limit = Number(query.limit);
    const { rows } = await call.client.query(
      `select ${SUMMARY}, extracted_text from messages
       where org_id = $1 and env_id = $2 and (inbox_id, id) > ($3, '') and (inbox_id, id) < ($3, '~')
         and not labels && '{spam,blocked}'
       order by inbox_id desc, id desc limit $4`,
      [call.org, call.env, params.id, limit + 1],
    );
    return page(await withRecipients(call, rows), limit);
  }),
);

app.get<Route>('/api/v1/inboxes/:id/threads', ({ headers, params, query }) =>
  run(headers.authorization, async (call) => {
    await requireInbox(call, params.id);
    const limit = Number(query.limit);
    const { rows } = await call.client.query(
      `select * from threads where org_id = $1 and env_id = $2 and inbox_id = $3 and message_count > 0
         and merged_into_id is null order by last_message_at desc, id desc limit $4`,
      [call.org, call.env, params.id, limit + 1],
    );
    return page(rows, limit);
  }),
);

app.get<Route>('/api/v1/threads/:id', ({ headers, params }) =>
  run(headers.authorization, async (call) => {
    const found = await call.client.query(
      'select * from threads where id = $1 and org_id = $2 and env_id = $3',
      [params.id, call.org, call.env],
    );
    const { rows } = await call.client.query(
      `select ${SUMMARY}, extracted_text from messages where thread_id = $1 and not labels && '{spam,blocked}'
       order by id desc limit 100`,
      [params.id],
    );
    return { ...found.rows[0], messages: await withRecipients(call, rows.reverse()) };
  }),
);

app.post<Route>('/api/v1/inboxes/:id/drafts', ({ headers, params, body }, reply) =>
  run(headers.authorization, async (call) => {
    await requireInbox(call, params.id);
    const { rows } = await call.client.query(
      `insert into drafts (id, org_id, env_id, inbox_id, "to", cc, bcc, reply_to, subject, text_body, headers, created_at, updated_at)
       values ($1, $2, $3, $4, $5, '[]', '[]', '[]', $6, $7, '{}', now(), now()) returning *`,
      [
        `drf_${randomUUID()}`,
        call.org,
        call.env,
        params.id,
        JSON.stringify(body.to),
        body.subject,
        body.text_body,
      ],
    );
    reply.code(201);
    return { ...rows[0], attachments: [] };
  }),
);

app.post<Route>('/api/v1/inboxes/:id/messages', async ({ headers, params, body }, reply) => {
  const id = `msg_${randomUUID()}`;
  const message = await run(headers.authorization, async (call) => {
    await requireInbox(call, params.id);
    const threadId = `thr_${randomUUID()}`;
    await call.client.query(
      `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, message_count, last_message_at, created_at,
         updated_at) values ($1, $2, $3, $4, $5, $5, 1, now(), now(), now())`,
      [threadId, call.org, call.env, params.id, body.subject],
    );
    const { rows } = await call.client.query(
      `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc, reply_to,
         subject, text_body, headers, rfc_message_id, size_bytes, created_at, updated_at)
       values ($1, $2, $3, $4, $5, 'outbound', 'queued', 'bench@bench.test', $6, '[]', '[]', '[]', $7, $8, '{}', $9, 1000, now(), now())
       returning *`,
      [
        id,
        call.org,
        call.env,
        params.id,
        threadId,
        JSON.stringify(body.to),
        body.subject,
        body.text_body,
        `<${id}@bench.test>`,
      ],
    );
    await call.client.query(
      `insert into message_recipients (message_id, position, org_id, field, email, status, updated_at)
       values ($1, 0, $2, 'to', 'person@example.com', 'queued', now())`,
      [id, call.org],
    );
    return rows[0];
  });
  await temporal.workflow.start('sendMessage', {
    // No worker polls it.
    taskQueue: 'bench-without-worker',
    workflowId: id,
    args: [{ messageId: id }],
  });
  reply.code(201);
  return message;
});

app.patch<Route>('/api/v1/drafts/:id', ({ headers, params, body }) =>
  run(headers.authorization, async (call) => {
    const scope = [params.id, call.org, call.env];
    const { rows: locked } = await call.client.query(
      'select * from drafts where id = $1 and org_id = $2 and env_id = $3 for update',
      scope,
    );
    await requireInbox(call, locked[0].inbox_id);
    const { rows: attachments } = await call.client.query(
      'select * from attachments where draft_id = $1 order by position',
      [params.id],
    );
    const { rows } = await call.client.query(
      'update drafts set subject = $2, version = version + 1, updated_at = now() where id = $1 returning *',
      [params.id, body.subject],
    );
    return { ...rows[0], attachments };
  }),
);

await app.listen({ host: '127.0.0.1', port: Number(process.env.API_PORT) });
process.once('SIGTERM', async () => {
  await app.close();
  await pool.end();
  await connection.close();
});
