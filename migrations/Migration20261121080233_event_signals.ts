import { Migration } from '@mikro-orm/migrations';

export class Migration20261121080233_event_signals extends Migration {
  override name = 'Migration20261121080233_event_signals';

  override up(): void | Promise<void> {
    this.addSql(
      `create or replace function "events_signal_event_fn"() returns trigger as $$ begin perform pg_notify('agent_email_events', case when new.inbox_id is null then new.org_id else new.env_id end); return null; end; $$ language plpgsql;`,
    );
    this.addSql(
      `create trigger "signal_event" AFTER INSERT on "events" for each ROW execute function "events_signal_event_fn"();`,
    );
  }
}
