-- Trigger of `organizations`: a slug that an organization releases stays reserved for it for 90 days, because links for
-- signing in contain it. Of the slugs that it has given up, the newest five are reserved.
create or replace function claim_slug() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
begin
  if tg_op <> 'INSERT' then
    insert into released_slugs (slug, org_id, released_at) values (old.slug, old.id, now())
    on conflict (slug) do update set org_id = excluded.org_id, released_at = excluded.released_at;
    delete from released_slugs where org_id = old.id and slug not in (
      select slug from released_slugs where org_id = old.id order by released_at desc, slug limit 5);
  end if;
  if tg_op <> 'DELETE' then
    delete from released_slugs
    where slug = new.slug and (org_id = new.id or released_at < now() - interval '90 days');
    if exists (select from released_slugs where slug = new.slug) then
      raise exception 'the slug is reserved for another organization'
        using errcode = 'unique_violation', table = 'organizations', constraint = 'organizations_slug_unique';
    end if;
  end if;
  return null;
end $$;
