import { Migration } from '@mikro-orm/migrations';

// Roles belong to the cluster and may exist already, for another database. The API switches to the role; it must not have
// its privileges otherwise.
const ROLE = `do $$ begin
    if not exists (select from pg_roles where rolname = 'agent_email_staff') then create role "agent_email_staff" nologin; end if;
  end $$;
  grant agent_email_staff to agent_email_api with inherit false, set true`;

const GRANTS = `grant usage on schema public to agent_email_staff;
  grant select on organizations, environments, inboxes, members, domains, organization_policies, usage_counters, usage_deltas,
    usage_hours, usage_events, custom_limits to agent_email_staff;
  grant select (id, email, name, avatar_url, status, email_verified_at, deleted_at, created_at, updated_at) on users
    to agent_email_staff;
  grant update (status, updated_at) on users, environments, inboxes to agent_email_staff;
  grant update (status, tier, updated_at) on organizations to agent_email_staff;
  grant update (role) on members to agent_email_staff;
  grant select (id, user_id, kind, method, factors, sso_configuration_id, authenticated_at, ip, user_agent, last_seen_at,
    expires_at, revoked_at, created_at), update (revoked_at) on sessions to agent_email_staff;
  grant select (id, org_id, env_id, inbox_id, name, last_four, permissions, expires_at, revoked_at, last_used_at,
    created_at, created_by_key_id, created_by_user_id, allowed_cidrs, previous_last_four, previous_expires_at),
    update (revoked_at) on api_keys to agent_email_staff;
  grant select, insert, update, delete on limit_overrides, staff_members to agent_email_staff;
  grant select, insert on audit_entries, staff_audit_entries to agent_email_staff;
  grant insert on usage_events, notifications to agent_email_staff;
  grant select, insert, update, delete on outbox to agent_email_staff;
  grant usage, select on sequence outbox_id_seq to agent_email_staff;
  grant select on staff_members to agent_email_people;
  grant select, insert, update, delete on staff_members to agent_email_worker;
  grant select, insert on staff_audit_entries to agent_email_worker`;

/** Staff of the service, their log, and the role that works with every organization. */
export class Migration20261122121559_staff extends Migration {
  override name = 'Migration20261122121559_staff';

  override up(): void {
    this.addSql(ROLE);
    this.addSql(
      `create table "staff_audit_entries" ("id" text collate "C" not null, "staff_id" text collate "C" not null, "session_id" text collate "C" not null, "action" text not null, "resource_type" text not null, "resource_id" text not null, "organization_id" text collate "C" null, "reason" text null, "details" jsonb not null, "ip" text not null, "request_id" text not null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(
      `create index "staff_audit_entries_organization_id_id_index" on "staff_audit_entries" ("organization_id", "id");`,
    );
    this.addSql(
      `create index "staff_audit_entries_staff_id_id_index" on "staff_audit_entries" ("staff_id", "id");`,
    );
    this.addSql(
      `create index "staff_audit_entries_resource_id_id_index" on "staff_audit_entries" ("resource_id", "id");`,
    );
    this.addSql(
      `create index "staff_audit_entries_action_id_index" on "staff_audit_entries" ("action", "id");`,
    );

    this.addSql(
      `create table "staff_members" ("user_id" text collate "C" not null, "role" text not null, "created_by" text collate "C" null, "created_at" timestamptz(3) not null, primary key ("user_id"));`,
    );

    this.addSql(
      `create policy "staff" on "organizations" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(
      `create policy "staff" on "notifications" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(
      `create policy "staff" on "limit_overrides" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(
      `create policy "staff" on "environments" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(`create policy "staff" on "domains" to "agent_email_staff" using (true) with check (true);`);

    this.addSql(`create policy "staff" on "inboxes" to "agent_email_staff" using (true) with check (true);`);

    this.addSql(
      `create policy "staff" on "custom_limits" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(
      `create policy "staff" on "audit_entries" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(`create policy "staff" on "api_keys" to "agent_email_staff" using (true) with check (true);`);

    this.addSql(
      `create policy "staff" on "organization_policies" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(`create policy "staff" on "outbox" to "agent_email_staff" using (true) with check (true);`);

    this.addSql(
      `create policy "staff" on "usage_counters" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(
      `create policy "staff" on "usage_deltas" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(
      `create policy "staff" on "usage_events" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(
      `create policy "staff" on "usage_hours" to "agent_email_staff" using (true) with check (true);`,
    );

    this.addSql(`create policy "staff" on "members" to "agent_email_staff" using (true) with check (true);`);

    this.addSql(
      `alter table "staff_members" add constraint "staff_members_user_id_foreign" foreign key ("user_id") references "users" ("id") on update cascade on delete cascade;`,
    );
    this.addSql(
      `alter table "staff_members" add constraint "staff_members_role" check (role = ANY (ARRAY['support'::text, 'admin'::text]));`,
    );
    this.addSql(GRANTS);
  }
}
