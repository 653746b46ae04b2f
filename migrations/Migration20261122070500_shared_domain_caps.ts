import { Migration } from '@mikro-orm/migrations';

/** How much organizations may send from the shared domain in a day. */
export class Migration20261122070500_shared_domain_caps extends Migration {
  override name = 'Migration20261122070500_shared_domain_caps';

  override up(): void {
    this.addSql(
      `create table "shared_domain_caps" ("org_id" text collate "C" not null, "day" date not null, "recipients" int not null, "cap" int not null, primary key ("org_id"));`,
    );
    this.addSql(
      `alter table "shared_domain_caps" add constraint "shared_domain_caps_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;`,
    );
    this.addSql(`alter table "shared_domain_caps" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "shared_domain_caps" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "shared_domain_caps" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `grant select, insert, update on "shared_domain_caps" to agent_email_api;
       grant select, insert, update, delete on "shared_domain_caps" to agent_email_worker`,
    );
  }
}
