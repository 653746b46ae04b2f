import { Migration } from '@mikro-orm/migrations';

export class Migration20261123161321_message_findings extends Migration {
  override name = 'Migration20261123161321_message_findings';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "messages" add "codes" jsonb not null default '[]', add "links" jsonb not null default '[]', add "all_links" jsonb not null default '[]', add "has_more_links" boolean not null default false, add "invites" jsonb not null default '[]', add "findings_version" smallint not null default 0;`,
    );
  }
}
