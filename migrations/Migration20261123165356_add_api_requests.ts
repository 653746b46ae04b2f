import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

export class Migration20261123165356_add_api_requests extends Migration {
  override name = 'Migration20261123165356_add_api_requests';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "api_requests" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "method" text not null, "path" text not null, "status" smallint not null, "code" text null, "credential_kind" text not null, "credential_id" text collate "C" not null, "duration_ms" int not null, primary key ("id"));`,
    );
    this.addSql(`create index "api_requests_org_id_id_index" on "api_requests" ("org_id", "id");`);
    this.addSql(
      `create index "api_requests_credential_id_id_index" on "api_requests" ("credential_id", "id");`,
    );
    this.addSql(
      `create index "api_requests_errors_index" on "api_requests" ("org_id", "status", "id") where "status" >= 400;`,
    );

    this.addSql(`alter table "api_requests" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "api_requests" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "api_requests" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "lookup" on "api_requests" to "agent_email_lookup" using (true) with check (true);`,
    );

    this.addSql(
      `grant select on "api_requests" to agent_email_api; grant select, insert, update, delete on "api_requests" to agent_email_worker; grant select, insert on "api_requests" to agent_email_lookup;`,
    );
    this.addSql(replaceSqlFunction('record_api_requests'));
    this.addSql(`grant create on schema public to agent_email_lookup;`);
    this.addSql(`alter function record_api_requests owner to agent_email_lookup;`);
    this.addSql(`revoke create on schema public from agent_email_lookup;`);
    this.addSql(`revoke all on function record_api_requests from public;`);
    this.addSql(`grant execute on function record_api_requests to agent_email_api;`);
  }
}
