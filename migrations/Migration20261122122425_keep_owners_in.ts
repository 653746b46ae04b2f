import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** An owner can always repair an enforced single sign-on; slugs stay reserved; approvers compare versions of a draft. */
export class Migration20261122122425_keep_owners_in extends Migration {
  override name = 'Migration20261122122425_keep_owners_in';

  override up(): void {
    this.addSql(replaceSqlFunction('lacks_break_glass_owner'));
    this.addSql(`grant create on schema public to agent_email_lookup;
      alter function lacks_break_glass_owner owner to agent_email_lookup;
      revoke all on function lacks_break_glass_owner from public;
      grant execute on function lacks_break_glass_owner to agent_email_api, agent_email_people, agent_email_worker`);

    this.addSql(
      `create table "released_slugs" ("slug" text not null, "org_id" text collate "C" not null, "released_at" timestamptz(3) not null, primary key ("slug"));`,
    );
    this.addSql(`create index "released_slugs_org_id_index" on "released_slugs" ("org_id");`);
    this.addSql(`create index "released_slugs_released_at_index" on "released_slugs" ("released_at");`);
    this.addSql(`alter table "released_slugs" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "released_slugs" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    for (const role of ['worker', 'lookup', 'people'])
      this.addSql(
        `create policy "${role}" on "released_slugs" to "agent_email_${role}" using (true) with check (true);`,
      );
    this.addSql(`grant select, insert, update, delete on released_slugs to agent_email_lookup;
      grant select on released_slugs to agent_email_people;
      grant select, update, delete on released_slugs to agent_email_worker`);
    this.addSql(replaceSqlFunction('claim_slug'));
    this.addSql(`alter function claim_slug owner to agent_email_lookup;
      revoke create on schema public from agent_email_lookup;
      revoke all on function claim_slug from public`);
    for (const [trigger, event, when] of [
      ['claim_slug', 'insert', ''],
      ['claim_changed_slug', 'update', ' when (old.slug is distinct from new.slug)'],
      ['release_slug', 'delete', ''],
    ])
      this.addSql(
        `create trigger "${trigger}" after ${event} on "organizations" for each row${when} execute function "claim_slug"();`,
      );

    this.addSql(`alter table "drafts" add "approval_history" jsonb null;`);
  }
}
