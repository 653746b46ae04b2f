-- Searches one environment, or one inbox of it: a window of matches, newest first (with their rank) or oldest first.
--
-- Text operators are not leakproof: under a tenant's policy PostgreSQL tests each row of the table before it looks at a
-- word. This function runs as a role whose policy shows every row, and therefore demands the transaction's organization.
--
-- Rare words are looked up in the index and sorted, frequent ones are found on a walk through the inbox. The planner
-- chooses well only if it sees the values (force_custom_plan). With the default random_page_cost it assumes spinning
-- disks and walks through the inbox even for a rare label, which takes ten times as long as the index of words.
--
-- A filter on `messages` is a scalar subquery, which looks each match up by its key. As a join, stale statistics made
-- the planner walk through, or hash, the messages of all tenants. Without such filters the condition is constant in the
-- custom plan and goes away.
--
-- Only one of the two columns, inbox or environment, is compared within the walk, so that only one of the two indexes
-- fits: otherwise PostgreSQL looks for an inbox's messages among those of a large environment. The environment of an
-- inbox's matches is checked afterwards.
create or replace function search_messages(
  requested_org text, requested_env text, requested_inbox text, facets text, words text, requested_status text,
  subject_pattern text, created_before timestamptz, created_from timestamptz,
  below_id text, above_id text, ascending boolean, max_results integer
) returns table (id text, rank real)
language plpgsql stable security definer set search_path = public, pg_temp
set plan_cache_mode = force_custom_plan set random_page_cost = 1.1 as $$
declare
  terms tsquery := to_tsquery('simple', words);
  query tsquery := facets::tsquery;
begin
  if requested_org is distinct from nullif(current_setting('app.org_id', true), '') then
    raise exception 'search_messages is for the organization of the transaction' using errcode = 'insufficient_privilege';
  end if;
  if numnode(terms) > 0 then
    query := query && terms;
  elsif words <> '' then
    -- No message matches punctuation alone.
    return;
  end if;
  if ascending then
    return query
      with oldest as materialized (
        select s.message_id, s.env_id from message_search s
        where s.document @@ query and s.org_id = requested_org
          and (requested_inbox is not null or s.env_id = requested_env)
          and (requested_inbox is null or s.inbox_id = requested_inbox)
          and (above_id is null or s.message_id > above_id) and (below_id is null or s.message_id < below_id)
          and ((requested_status is null and subject_pattern is null and created_before is null and created_from is null)
            or (select (requested_status is null or m.status = requested_status)
                  and (subject_pattern is null or m.subject ilike subject_pattern)
                  and (created_before is null or m.created_at < created_before)
                  and (created_from is null or m.created_at >= created_from)
                from messages m where m.id = s.message_id))
        order by s.message_id asc limit max_results
      )
      select oldest.message_id, 0::real from oldest where oldest.env_id = requested_env order by oldest.message_id;
  else
    return query
      with newest as materialized (
        select s.message_id, s.env_id, s.document from message_search s
        where s.document @@ query and s.org_id = requested_org
          and (requested_inbox is not null or s.env_id = requested_env)
          and (requested_inbox is null or s.inbox_id = requested_inbox)
          and (above_id is null or s.message_id > above_id) and (below_id is null or s.message_id < below_id)
          and ((requested_status is null and subject_pattern is null and created_before is null and created_from is null)
            or (select (requested_status is null or m.status = requested_status)
                  and (subject_pattern is null or m.subject ilike subject_pattern)
                  and (created_before is null or m.created_at < created_before)
                  and (created_from is null or m.created_at >= created_from)
                from messages m where m.id = s.message_id))
        order by s.message_id desc limit max_results
      )
      select newest.message_id,
             case when numnode(terms) > 0 then ts_rank(newest.document, terms, 1) else 0::real end
      from newest where newest.env_id = requested_env order by newest.message_id desc;
  end if;
end $$;
