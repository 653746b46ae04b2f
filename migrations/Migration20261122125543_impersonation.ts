import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** Visits of staff to organizations, what they called, and the consent of organizations. */
export class Migration20261122125543_impersonation extends Migration {
  override name = 'Migration20261122125543_impersonation';

  override up(): void {
    this.addSql(
      `create table "impersonations" ("id" text collate "C" not null, "org_id" text collate "C" not null, "staff_id" text collate "C" not null, "staff_session_id" text collate "C" not null, "token_hash" bytea not null, "allows_write" boolean not null, "reason" text not null, "ip" text not null, "request_id" text not null, "expires_at" timestamptz(3) not null, "ended_at" timestamptz(3) null, "reported_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`create index "impersonations_org_id_id_index" on "impersonations" ("org_id", "id");`);
    this.addSql(`create index "impersonations_staff_id_id_index" on "impersonations" ("staff_id", "id");`);
    this.addSql(
      `create index "impersonations_unreported_index" on "impersonations" ("id") where "reported_at" is null;`,
    );
    this.addSql(
      `alter table "impersonations" add constraint "impersonations_token_hash_unique" unique ("token_hash");`,
    );
    this.addSql(
      `create table "impersonated_operations" ("impersonation_id" text collate "C" not null, "operation" text not null, "resource_id" text collate "C" not null, "org_id" text collate "C" not null, "is_change" boolean not null, "calls" int not null, "created_at" timestamptz(3) not null, primary key ("impersonation_id", "operation", "resource_id"));`,
    );
    this.addSql(
      `create index "impersonated_operations_org_id_index" on "impersonated_operations" ("org_id");`,
    );
    this.addSql(
      `alter table "impersonations" add constraint "impersonations_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "impersonated_operations" add constraint "impersonated_operations_impersonation_id_foreign" foreign key ("impersonation_id") references "impersonations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "impersonated_operations" add constraint "impersonated_operations_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    for (const [table, roles] of [
      ['impersonations', ['worker', 'lookup', 'staff']],
      ['impersonated_operations', ['worker', 'staff']],
    ] as const) {
      this.addSql(`alter table "${table}" enable row level security;`);
      this.addSql(
        `create policy "tenant" on "${table}" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
      );
      for (const role of roles)
        this.addSql(
          `create policy "${role}" on "${table}" to "agent_email_${role}" using (true) with check (true);`,
        );
    }

    this.addSql(
      `alter table "organization_policies" add "support_access" text not null default 'allowed', add "support_access_until" timestamptz(3) null;`,
    );
    this.addSql(
      `alter table "organization_policies" add constraint "organization_policies_support_access" check (support_access = ANY (ARRAY['allowed'::text, 'ask'::text]));`,
    );

    this.addSql(`grant select on impersonations, staff_members to agent_email_lookup;
      grant select (id, org_id, staff_id, staff_session_id, allows_write, reason, ip, request_id, expires_at, ended_at,
        reported_at, created_at), insert, update (ended_at, reported_at) on impersonations to agent_email_staff;
      grant select, insert, update (calls) on impersonated_operations to agent_email_staff;
      grant select, insert, update, delete on impersonations, impersonated_operations to agent_email_worker;
      grant select (id, dedupe_key) on notifications to agent_email_staff`);
    this.addSql(replaceSqlFunction('find_impersonation'));
    this.addSql(`grant create on schema public to agent_email_lookup;
      alter function find_impersonation owner to agent_email_lookup;
      grant execute on function find_environment to agent_email_lookup;
      revoke create on schema public from agent_email_lookup;
      revoke all on function find_impersonation from public;
      grant execute on function find_impersonation to agent_email_api, agent_email_worker`);
  }
}
