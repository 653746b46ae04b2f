import { Migration } from '@mikro-orm/migrations';

/** People are known to an identity provider, and no longer to a configuration, which may be replaced or deleted. */
export class Migration20261123025457_sso_providers extends Migration {
  override name = 'Migration20261123025457_sso_providers';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "sso_providers" ("id" text collate "C" not null, "org_id" text collate "C" not null, "type" text not null, "issuer" text not null, "certificates" text[] not null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`create index "sso_providers_org_id_issuer_index" on "sso_providers" ("org_id", "issuer");`);

    this.addSql(`alter table "sso_identities" drop constraint "sso_identities_configuration_id_foreign";`);

    this.addSql(
      `alter table "sso_configurations" add "service_provider_id" text collate "C" null, add "provider_id" text collate "C" null, add "replaced_at" timestamptz(3) null, add "keys_read_at" timestamptz(3) null;`,
    );

    this.addSql(`alter table "sso_transactions" drop constraint "sso_transactions_purpose";`);
    this.addSql(
      `alter table "sso_transactions" add constraint "sso_transactions_purpose" check (purpose = ANY (ARRAY['login'::text, 'test'::text, 'link'::text, 'confirm'::text, 'prove'::text]));`,
    );

    // One identity provider for each configuration that has let people in: its certificates follow with the next metadata.
    this.addSql(`
      insert into sso_providers (id, org_id, type, issuer, certificates, created_at)
      select 'ssp' || substr(id, 4), org_id, type, issuer, '{}', created_at from sso_configurations
      where issuer is not null and (activated_at is not null or id in (select configuration_id from sso_identities))`);
    this.addSql(`
      update sso_configurations c set provider_id = p.id from sso_providers p where p.id = 'ssp' || substr(c.id, 4)`);
    this.addSql(
      `update sso_configurations set service_provider_id = replaces_id where replaces_id is not null`,
    );
    this.addSql(`
      delete from sso_identities i where not exists (
        select from sso_configurations c where c.id = i.configuration_id and c.issuer = i.issuer)`);
    this.addSql(`update sso_identities set configuration_id = 'ssp' || substr(configuration_id, 4)`);
    this.addSql(`alter table "sso_identities" drop constraint "sso_identities_pkey";`);
    this.addSql(`alter table "sso_identities" drop column "issuer";`);
    this.addSql(`alter table "sso_identities" rename column "configuration_id" to "provider_id";`);
    this.addSql(
      `alter table "sso_identities" add constraint "sso_identities_provider_id_foreign" foreign key ("provider_id") references "sso_providers" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "sso_identities" add primary key ("provider_id", "subject");`);

    this.addSql(
      `alter table "sso_providers" add constraint "sso_providers_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "sso_providers" add constraint "sso_providers_type" check (type = ANY (ARRAY['oidc'::text, 'saml'::text]));`,
    );
    this.addSql(`alter table "sso_providers" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "sso_providers" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "sso_providers" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "sso_providers" to "agent_email_people" using (true) with check (true);`,
    );
    this.addSql(
      `grant select, insert, update on sso_providers to agent_email_api, agent_email_people;
       grant select, update, delete on sso_providers to agent_email_worker`,
    );
  }
}
