import { Migration } from '@mikro-orm/migrations';

/** OAuth providers: whom their identities belong to, and sign-ins that have left for one. */
export class Migration20261122091125_oauth extends Migration {
  override name = 'Migration20261122091125_oauth';

  override up(): void {
    this.addSql(
      `create table "oauth_identities" ("provider" text not null, "issuer" text not null, "subject" text not null, "user_id" text collate "C" not null, "email" text null, "last_used_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, primary key ("provider", "issuer", "subject"));`,
    );
    this.addSql(
      `alter table "oauth_identities" add constraint "oauth_identities_user_id_provider_unique" unique ("user_id", "provider");`,
    );
    this.addSql(
      `create table "oauth_transactions" ("state_hash" bytea not null, "provider" text not null, "browser_token_hash" bytea not null, "session_id" text collate "C" null, "redirect_to" text not null, "expires_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, primary key ("state_hash"));`,
    );
    this.addSql(`create index "oauth_transactions_session_id_index" on "oauth_transactions" ("session_id");`);
    this.addSql(`create index "oauth_transactions_expires_at_index" on "oauth_transactions" ("expires_at");`);
    this.addSql(
      `alter table "oauth_identities" add constraint "oauth_identities_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "oauth_transactions" add constraint "oauth_transactions_session_id_foreign" foreign key ("session_id") references "sessions" ("id") on delete cascade;`,
    );
    this.addSql(`grant select, insert, update, delete on oauth_identities, oauth_transactions
       to agent_email_people, agent_email_worker;`);
  }
}
