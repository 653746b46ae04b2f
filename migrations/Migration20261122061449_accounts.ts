import { Migration } from '@mikro-orm/migrations';

/** Sign-ups, mailed tokens, recovery codes, and the throttle of sign-ins. Only people's use-cases and workers read them. */
export class Migration20261122061449_accounts extends Migration {
  override name = 'Migration20261122061449_accounts';

  override up(): void {
    this.addSql(
      `create table "sign_in_attempts" ("key_hash" bytea not null, "failures" int not null, "last_attempt_at" timestamptz(3) not null, "blocked_until" timestamptz(3) not null, primary key ("key_hash"));`,
    );
    this.addSql(
      `create index "sign_in_attempts_last_attempt_at_index" on "sign_in_attempts" ("last_attempt_at");`,
    );

    this.addSql(
      `create table "sign_ups" ("id" text collate "C" not null, "email" text not null, "name" text not null, "organization_name" text not null, "password_hash" text not null, "link_token_hash" bytea not null, "browser_token_hash" bytea not null, "expires_at" timestamptz(3) not null, "used_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(
      `alter table "sign_ups" add constraint "sign_ups_link_token_hash_unique" unique ("link_token_hash");`,
    );
    this.addSql(`create index "sign_ups_email_index" on "sign_ups" ("email");`);
    this.addSql(`create index "sign_ups_expires_at_index" on "sign_ups" ("expires_at");`);

    this.addSql(
      `create table "account_tokens" ("token_hash" bytea not null, "purpose" text not null, "user_id" text collate "C" not null, "new_email" text null, "expires_at" timestamptz(3) not null, "used_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("token_hash"));`,
    );
    this.addSql(`create index "account_tokens_user_id_index" on "account_tokens" ("user_id");`);
    this.addSql(`create index "account_tokens_expires_at_index" on "account_tokens" ("expires_at");`);

    this.addSql(
      `alter table "account_tokens" add constraint "account_tokens_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "account_tokens" add constraint "account_tokens_purpose" check (purpose = ANY (ARRAY['reset_password'::text, 'change_email'::text, 'recover'::text]));`,
    );
    this.addSql(
      `create table "mfa_recovery_codes" ("user_id" text collate "C" not null, "code_hash" bytea not null, "used_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("user_id", "code_hash"));`,
    );

    this.addSql(
      `alter table "mfa_recovery_codes" add constraint "mfa_recovery_codes_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;`,
    );
    this.addSql(`grant select, insert, update, delete on sign_ups, account_tokens, sign_in_attempts,
       mfa_recovery_codes
       to agent_email_people, agent_email_worker;`);
  }
}
