import { Migration } from '@mikro-orm/migrations';

/** A search that filters by nothing that `messages` alone knows does not look there. */
export class Migration20261121103534_search_asks_messages_when_needed extends Migration {
  override name = 'Migration20261121103534_search_asks_messages_when_needed';

  override up(): void {
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

const MATCHES = `s.document @@ query and s.org_id = wanted_org and s.env_id = wanted_env
           and (wanted_inbox is null or s.inbox_id = wanted_inbox)
           and (above is null or s.message_id > above) and (below is null or s.message_id < below)
           and ${MESSAGE_MATCHES}`;

// Otherwise as it was: security definer with the organization demanded, a window of matches, newest or oldest first.
const SEARCH = `create or replace function search_messages(
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
         select s.message_id, 0::real from message_search s
         where ${MATCHES}
         order by s.message_id asc limit wanted;
     else
       return query
         with newest as materialized (
           select s.message_id, s.document from message_search s
           where ${MATCHES}
           order by s.message_id desc limit wanted
         )
         select newest.message_id,
                case when numnode(terms) > 0 then ts_rank(newest.document, terms, 1) else 0::real end
         from newest order by newest.message_id desc;
     end if;
   end $$`;
