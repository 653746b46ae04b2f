import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/**
 * Keeps the Message-IDs of each inbox with their threads, and makes merged threads aliases. Existing messages are entered:
 * their own ids first, then those they name; of equal ids, the oldest message's.
 */
export class Migration20261122060656_thread_message_ids extends Migration {
  override name = 'Migration20261122060656_thread_message_ids';

  override up(): void {
    this.addSql(
      `create table "thread_message_ids" (
         "inbox_id" text collate "C" not null,
         "id_hash" text collate "C" not null,
         "org_id" text collate "C" not null,
         "thread_id" text collate "C" not null,
         "source" text not null,
         primary key ("inbox_id", "id_hash")
       );
       create index "thread_message_ids_thread_id_index" on "thread_message_ids" ("thread_id");`,
    );
    this.addSql(
      `alter table "threads" add "has_root" boolean not null default false, add "merged_into_id" text collate "C" null,
         add "has_unmoved_messages" boolean not null default false, add "reconciled_at" timestamptz(3) null;
       alter table "threads" add constraint "threads_merged_into_id_foreign" foreign key ("merged_into_id") references "threads" ("id") on delete cascade;
       create index "threads_merged_index" on "threads" ("merged_into_id") where "merged_into_id" is not null;
       create index "threads_unmoved_index" on "threads" ("updated_at") where "has_unmoved_messages";`,
    );
    this.addSql(replaceSqlFunction('reindex_message_thread'));
    this.addSql(
      `create trigger "reindex_thread" after update on "messages" for each row when (old.thread_id is distinct from new.thread_id) execute function "reindex_message_thread"();`,
    );
    this.addSql(
      `alter table "thread_message_ids" add constraint "thread_message_ids_thread_id_foreign" foreign key ("thread_id") references "threads" ("id") on delete cascade deferrable initially deferred;
       alter table "thread_message_ids" add constraint "thread_message_ids_source" check (source = ANY (ARRAY['held'::text, 'named'::text, 'unverified'::text]));`,
    );
    this.addSql(
      `alter table "thread_message_ids" enable row level security;
       create policy "tenant" on "thread_message_ids" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
       create policy "worker" on "thread_message_ids" to "agent_email_worker" using (true) with check (true);
       grant select, insert, update on "thread_message_ids" to "agent_email_api";
       grant select, insert, update, delete on "thread_message_ids" to "agent_email_worker";`,
    );
    this.addSql(
      `insert into "thread_message_ids" ("inbox_id", "id_hash", "org_id", "thread_id", "source")
       select distinct on (m.inbox_id, hash) m.inbox_id, hash, m.org_id, m.thread_id,
         case when i.own and m.trusted then 'held' when i.own then 'unverified' else 'named' end
       from (select *, not labels && '{spam,blocked}'::text[] and authentication ->> 'dmarc' is distinct from 'fail'
               as trusted from "messages") m
       cross join lateral (
         select m.rfc_message_id as value, true as own
         union all select named, false from unnest(m.in_reply_to || m.reference_ids) named where m.trusted) i
       cross join lateral (
         select encode(substr(sha256(convert_to(btrim(i.value, '<> '), 'UTF8')), 1, 16), 'hex') as hash) h
       where i.value <> ''
       order by m.inbox_id, hash, i.own desc, m.id;`,
    );
    this.addSql(
      `update "threads" t set has_root = true
       where lower(left(t.subject, 255)) = t.base_subject and exists (
         select from "messages" m where m.thread_id = t.id and m.in_reply_to is null and m.reference_ids = '{}');`,
    );
  }
}
