import { Migration } from '@mikro-orm/migrations';

/** Passkeys: challenges, a random handle for each person, and sign-ins that are bound to the browser. */
export class Migration20261122084636_passkeys extends Migration {
  override name = 'Migration20261122084636_passkeys';

  override up(): void {
    this.addSql(
      `alter table "users" add "webauthn_handle" bytea not null default uuid_send(gen_random_uuid());`,
    );
    this.addSql(
      `alter table "users" add constraint "users_webauthn_handle_unique" unique ("webauthn_handle");`,
    );
    this.addSql(
      `alter table "mfa_challenges" drop column "webauthn_challenge", add "browser_token_hash" bytea null;`,
    );
    this.addSql(
      `create table "webauthn_challenges" ("challenge_hash" bytea not null, "purpose" text not null, "user_id" text collate "C" null, "mfa_token_hash" bytea null, "expires_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, primary key ("challenge_hash"));`,
    );
    this.addSql(`create index "webauthn_challenges_user_id_index" on "webauthn_challenges" ("user_id");`);
    this.addSql(
      `create index "webauthn_challenges_expires_at_index" on "webauthn_challenges" ("expires_at");`,
    );
    this.addSql(
      `alter table "webauthn_challenges" add constraint "webauthn_challenges_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "webauthn_challenges" add constraint "webauthn_challenges_purpose" check (purpose = ANY (ARRAY['enroll'::text, 'second_factor'::text, 'sign_in'::text]));`,
    );
    this.addSql(`grant select, insert, update, delete on webauthn_challenges
       to agent_email_people, agent_email_worker;`);
  }
}
