import { Migration } from '@mikro-orm/migrations';

/** Customers' domains and their DKIM keys, and which domain an inbox is on. */
export class Migration20261121070000_domains extends Migration {
  override name = 'Migration20261121070000_domains';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "domains" ("id" text collate "C" not null, "org_id" text collate "C" not null, "domain_name" text not null, "client_id" text null, "ownership_token" text not null, "verification_status" text not null default 'pending', "spf_status" text not null default 'pending', "dkim_status" text not null default 'pending', "dmarc_status" text not null default 'pending', "status_reason" text null, "observed" jsonb not null, "missed_checks" int not null default 0, "episode" int not null default 1, "episode_started_at" timestamptz(3) not null, "next_look_at" timestamptz(3) null, "last_looked_at" timestamptz(3) null, "verified_at" timestamptz(3) null, "checked_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`create index "domains_org_id_id_index" on "domains" ("org_id", "id");`);
    this.addSql(
      `create index "domains_next_look_index" on "domains" ("next_look_at") where "next_look_at" is not null;`,
    );
    this.addSql(
      `alter table "domains" add constraint "domains_org_id_domain_name_unique" unique ("org_id", "domain_name");`,
    );
    this.addSql(`create unique index "domains_client_id_unique" on "domains" ("org_id", "client_id");`);
    this.addSql(
      `create unique index "domains_verified_name_unique" on "domains" ("domain_name") where "verification_status" = 'verified';`,
    );

    this.addSql(
      `create table "dkim_keys" ("domain_id" text collate "C" not null, "selector" text not null, "org_id" text collate "C" not null, "state" text not null, "public_key" text not null, "private_key" bytea not null, "created_at" timestamptz(3) not null, "retired_at" timestamptz(3) null, primary key ("domain_id", "selector"));`,
    );

    this.addSql(`alter table "inboxes" add "domain_id" text collate "C" null;`);
    this.addSql(
      `alter table "inboxes" add constraint "inboxes_domain_id_foreign" foreign key ("domain_id") references "domains" ("id") on delete set null;`,
    );
    this.addSql(`create index "inboxes_domain_id_index" on "inboxes" ("domain_id");`);

    this.addSql(
      `alter table "domains" add constraint "domains_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "domains" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "domains" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "domains" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "lookup" on "domains" to "agent_email_lookup" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "dkim_keys" add constraint "dkim_keys_domain_id_foreign" foreign key ("domain_id") references "domains" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "dkim_keys" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "dkim_keys" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "dkim_keys" to "agent_email_worker" using (true) with check (true);`,
    );
    for (const statement of [...GRANTS, ...CLAIM]) this.addSql(statement);
  }
}

const GRANTS = [
  `grant select, insert, update, delete on domains, dkim_keys to agent_email_api, agent_email_worker`,
  `grant select on domains to agent_email_lookup`,
];

// Whether a name is free for an organization to have verified. The lock, held until the commit, lets one at a time ask
// and verify; without it two could find it free and the second break on the unique index.
const CLAIM = [
  `create function claim_domain(wanted_name text, claiming_org text) returns boolean
   language plpgsql security definer set search_path = public, pg_temp as $$
   begin
     if claiming_org is distinct from coalesce(nullif(current_setting('app.org_id', true), ''), claiming_org) then
       raise exception 'claim_domain is for the organization of the transaction' using errcode = 'insufficient_privilege';
     end if;
     perform pg_advisory_xact_lock(hashtextextended('domain ' || wanted_name, 0));
     return not exists (select from domains
       where domain_name = wanted_name and verification_status = 'verified' and org_id <> claiming_org);
   end $$`,
  `grant create on schema public to agent_email_lookup`,
  `alter function claim_domain(text, text) owner to agent_email_lookup`,
  `revoke create on schema public from agent_email_lookup`,
  `revoke all on function claim_domain(text, text) from public`,
  `grant execute on function claim_domain(text, text) to agent_email_api, agent_email_worker`,
];
