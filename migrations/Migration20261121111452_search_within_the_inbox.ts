import { Migration } from '@mikro-orm/migrations';

/**
 * A search walks through its inbox, or its environment, alone. By an index on the id of a message it could also walk through
 * the newest messages of all tenants, and did so for those who had many.
 */
export class Migration20261121111452_search_within_the_inbox extends Migration {
  override name = 'Migration20261121111452_search_within_the_inbox';

  override up(): void | Promise<void> {
    this.addSql(`alter table "message_search" drop constraint "message_search_message_id_foreign";`);

    this.addSql(`drop index "message_search_inbox_id_message_id_index";`);
    this.addSql(`alter table "message_search" drop constraint "message_search_pkey";`);
    this.addSql(
      `alter table "message_search" add constraint "message_search_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade;`,
    );
    this.addSql(`create index "message_search_message_index" on "message_search" using hash ("message_id");`);
    this.addSql(`alter table "message_search" add primary key ("inbox_id", "message_id");`);
    this.addSql(SEARCH);
  }
}

// Where no filter is given the condition is constant in the custom plan and goes away. Where one is, each match is looked
// up by its key: a scalar subquery is no join, so that no statistics, however stale, make the planner walk through the
// messages of all tenants in the order of their ids, or hash them.
const MESSAGE_MATCHES = `(
             (wanted_status is null and subject_pattern is null and created_before is null and created_from is null)
             or (select (wanted_status is null or m.status = wanted_status)
                   and (subject_pattern is null or m.subject ilike subject_pattern)
                   and (created_before is null or m.created_at < created_before)
                   and (created_from is null or m.created_at >= created_from)
                 from messages m where m.id = s.message_id))`;

// One of the two columns, so that one of the two indexes: an inbox in an environment of many would else be looked for among
// all of them. What is found is held against the environment afterwards.
const MATCHES = `s.document @@ query and s.org_id = wanted_org
           and (wanted_inbox is not null or s.env_id = wanted_env)
           and (wanted_inbox is null or s.inbox_id = wanted_inbox)
           and (above is null or s.message_id > above) and (below is null or s.message_id < below)
           and ${MESSAGE_MATCHES}`;

// The planner thinks of disks: with its default a rare label is looked for on a walk through the inbox, and not in the index
// of words, which takes a tenth of the time where the index is in memory, or on anything without a moving head.
const SEARCH = `create or replace function search_messages(
     wanted_org text, wanted_env text, wanted_inbox text, facets text, words text, wanted_status text,
     subject_pattern text, created_before timestamptz, created_from timestamptz,
     below text, above text, ascending boolean, wanted integer
   ) returns table (id text, rank real)
   language plpgsql stable security definer set search_path = public, pg_temp
   set plan_cache_mode = force_custom_plan set random_page_cost = 1.1 as $$
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
         with oldest as materialized (
           select s.message_id, s.env_id from message_search s
           where ${MATCHES}
           order by s.message_id asc limit wanted
         )
         select oldest.message_id, 0::real from oldest where oldest.env_id = wanted_env order by oldest.message_id;
     else
       return query
         with newest as materialized (
           select s.message_id, s.env_id, s.document from message_search s
           where ${MATCHES}
           order by s.message_id desc limit wanted
         )
         select newest.message_id,
                case when numnode(terms) > 0 then ts_rank(newest.document, terms, 1) else 0::real end
         from newest where newest.env_id = wanted_env order by newest.message_id desc;
     end if;
   end $$`;
