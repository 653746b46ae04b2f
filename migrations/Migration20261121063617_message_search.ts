import { Migration } from '@mikro-orm/migrations';

/** Full-text search and look-up by label or address: a document a message, kept by triggers, read by one function. */
export class Migration20261121063617_message_search extends Migration {
  override name = 'Migration20261121063617_message_search';

  override up(): void {
    for (const statement of [...TABLES, ...DOCUMENT, ...TRIGGERS, ...SEARCH]) this.addSql(statement);
  }
}

const TABLES = [
  `create table "message_search" ("message_id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "inbox_id" text collate "C" not null, "document" tsvector not null, primary key ("message_id"))`,
  `create index "message_search_inbox_id_message_id_index" on "message_search" ("inbox_id", "message_id")`,
  `create index "message_search_env_id_message_id_index" on "message_search" ("env_id", "message_id")`,
  `create index "message_search_document_index" on "message_search" using gin ("document")`,
  `create policy "lookup" on "messages" to "agent_email_lookup" using (true) with check (true)`,
  `alter table "message_search" add constraint "message_search_message_id_foreign" foreign key ("message_id") references "messages" ("id") on update cascade on delete cascade`,
  `alter table "message_search" add constraint "message_search_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "message_search" enable row level security`,
  `create policy "tenant" on "message_search" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "message_search" to "agent_email_worker" using (true) with check (true)`,
  `create policy "lookup" on "message_search" to "agent_email_lookup" using (true) with check (true)`,
  `grant select, insert, update, delete on message_search to agent_email_worker`,
  // The triggers write as whoever writes the message; reading goes through search_messages alone, but an UPDATE reads.
  `grant select, insert, update on message_search to agent_email_api`,
  `grant select on message_search, messages to agent_email_lookup`,
];

const DOCUMENT = [
  // Without accents, and with each Chinese or Japanese character a word: they write none between. The service folds
  // what is searched for in the same way (domain/messages/search-query.ts).
  `create function search_words(value text) returns text
   language sql immutable parallel safe set search_path = pg_catalog as $$
     select case when value ~ '[^\\x01-\\x7f]' then
       regexp_replace(
         normalize(regexp_replace(normalize(value, NFKD), '[\\u0300-\\u036f]', '', 'g'), NFKC),
         '([\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff])', ' \\1 ', 'g')
     else value end
   $$`,
  // An address is found whole, by its domain, by its parts and by the name beside it.
  `create function search_address(email text, name text) returns text
   language sql immutable parallel safe set search_path = pg_catalog as $$
     select concat_ws(' ', left(email, 320), split_part(left(email, 320), '@', 2),
       regexp_replace(left(email, 320), '[^[:alnum:]]+', ' ', 'g'), left(name, 320))
   $$`,
  `create function search_labels(labels text[]) returns text[]
   language sql immutable parallel safe set search_path = pg_catalog as $$
     select coalesce(array_agg('l:' || left(label, 255)), '{}') from unnest(labels) label
   $$`,
  // Prefixes only: PostgreSQL refuses a document over 1 MiB, and nobody looks for a mail by its 20,000th word.
  `create function search_document(message messages) returns tsvector
   language plpgsql immutable parallel safe set search_path = public, pg_temp as $$
   declare
     facets tsvector;
     recipients text;
     addresses text[];
   begin
     select string_agg(search_address(entry ->> 'email', entry ->> 'name'), ' '),
            coalesce(array_agg('t:' || left(lower(entry ->> 'email'), 320)), '{}')
       into recipients, addresses
       from (select entry from jsonb_array_elements(message."to" || message.cc || message.bcc) entry limit 200) first;
     facets := array_to_tsvector(
       array[message.env_id, message.inbox_id, message.thread_id, 'd:' || message.direction,
             'f:' || left(lower(message.from_email), 320)]
       || addresses || search_labels(message.labels)
       || case when message.has_attachments then array['h:attachment'] else '{}'::text[] end);
     begin
       return facets
         || setweight(to_tsvector('simple', search_words(left(message.subject, 1000))), 'A')
         || setweight(to_tsvector('simple', search_words(search_address(message.from_email, message.from_name))), 'B')
         || setweight(to_tsvector('simple', search_words(coalesce(recipients, ''))), 'C')
         || to_tsvector('simple', search_words(left(
              coalesce(message.text_body, message.extracted_text, message.html_body, ''), 100000)));
     exception when program_limit_exceeded then
       -- A mail is never lost for its words.
       return facets;
     end;
   end $$`,
];

// As the ORM writes the triggers that message.entity.ts declares.
const TRIGGERS = [
  `create or replace function "messages_index_message_fn"() returns trigger as $$ begin insert into message_search (message_id, org_id, env_id, inbox_id, document) values (new.id, new.org_id, new.env_id, new.inbox_id, search_document(new)); return null; end; $$ language plpgsql`,
  `create trigger "index_message" after insert on "messages" for each row execute function "messages_index_message_fn"()`,
  `create or replace function "messages_reindex_labels_fn"() returns trigger as $$ begin update message_search set document = ts_delete(document, search_labels(old.labels)) || array_to_tsvector(search_labels(new.labels)) where message_id = new.id; return null; end; $$ language plpgsql`,
  `create trigger "reindex_labels" after update on "messages" for each row when ((old.labels IS DISTINCT FROM new.labels)) execute function "messages_reindex_labels_fn"()`,
  `insert into message_search (message_id, org_id, env_id, inbox_id, document)
     select id, org_id, env_id, inbox_id, search_document(messages) from messages`,
];

const SEARCH = [
  // Text operators are not leakproof: under a tenant's policy PostgreSQL would test each row of the table before it
  // looked at a word. This function runs as a role whose policy shows every row, so it must demand the organization.
  // A window of matches, newest (or oldest) first: rare words are looked up in the index and sorted, frequent ones
  // found on the walk through the inbox. Constants make the planner choose (force_custom_plan).
  `create function search_messages(
     wanted_org text, wanted_env text, wanted_inbox text, facets text, words text, wanted_status text,
     subject_pattern text, created_before timestamptz, created_from timestamptz,
     below text, above text, ascending boolean, wanted integer
   ) returns table (id text, rank real)
   language plpgsql stable security definer set search_path = public, pg_temp set plan_cache_mode = force_custom_plan as $$
   declare
     terms tsquery := to_tsquery('simple', words);
     query tsquery := facets::tsquery;
   begin
     if wanted_org is distinct from nullif(current_setting('app.org_id', true), '') then
       raise exception 'search_messages is for the organization of the transaction' using errcode = 'insufficient_privilege';
     end if;
     if numnode(terms) > 0 then
       query := query && terms;
     elsif words <> '' then
       -- Punctuation alone is in no mail.
       return;
     end if;
     if ascending then
       return query
         select s.message_id, 0::real
         from message_search s join messages m on m.id = s.message_id
         where s.document @@ query and s.org_id = wanted_org and s.env_id = wanted_env
           and (wanted_inbox is null or s.inbox_id = wanted_inbox)
           and (above is null or s.message_id > above) and (below is null or s.message_id < below)
           and (wanted_status is null or m.status = wanted_status)
           and (subject_pattern is null or m.subject ilike subject_pattern)
           and (created_before is null or m.created_at < created_before)
           and (created_from is null or m.created_at >= created_from)
         order by s.message_id asc limit wanted;
     else
       return query
         with newest as materialized (
           select s.message_id, s.document
           from message_search s join messages m on m.id = s.message_id
           where s.document @@ query and s.org_id = wanted_org and s.env_id = wanted_env
             and (wanted_inbox is null or s.inbox_id = wanted_inbox)
             and (above is null or s.message_id > above) and (below is null or s.message_id < below)
             and (wanted_status is null or m.status = wanted_status)
             and (subject_pattern is null or m.subject ilike subject_pattern)
             and (created_before is null or m.created_at < created_before)
             and (created_from is null or m.created_at >= created_from)
           order by s.message_id desc limit wanted
         )
         select newest.message_id,
                case when numnode(terms) > 0 then ts_rank(newest.document, terms, 1) else 0::real end
         from newest order by newest.message_id desc;
     end if;
   end $$`,
  `grant create on schema public to agent_email_lookup`,
  `alter function search_messages(text, text, text, text, text, text, text, timestamptz, timestamptz, text, text, boolean, integer) owner to agent_email_lookup`,
  `revoke create on schema public from agent_email_lookup`,
  `revoke all on function search_messages(text, text, text, text, text, text, text, timestamptz, timestamptz, text, text, boolean, integer) from public`,
  `grant execute on function search_messages(text, text, text, text, text, text, text, timestamptz, timestamptz, text, text, boolean, integer) to agent_email_api`,
];
