import { Migration } from '@mikro-orm/migrations';

/** Operators set tiers and overrides by hand: a word the code does not know would fail every call of the organization. */
export class Migration20261121141843_words_of_limits extends Migration {
  override name = 'Migration20261121141843_words_of_limits';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "organizations" add constraint "organizations_tier" check (tier = ANY (ARRAY['free'::text, 'developer'::text, 'business'::text, 'enterprise'::text]));`,
    );

    this.addSql(
      `alter table "limit_overrides" add constraint "limit_overrides_limited" check (limited = ANY (ARRAY['messages_sent'::text, 'messages_received'::text, 'storage_bytes'::text, 'api_calls'::text, 'webhook_deliveries'::text, 'inboxes'::text, 'domains'::text]));`,
    );
    this.addSql(
      `alter table "limit_overrides" add constraint "limit_overrides_kind" check (kind = ANY (ARRAY['soft'::text, 'hard'::text]));`,
    );
  }
}
