import { Migration } from '@mikro-orm/migrations';

/** Lets the sweep of the outbox take organizations in turn, urgent commands first, and counts waiting starts by queue. */
export class Migration20261122051242_outbox_turns extends Migration {
  override name = 'Migration20261122051242_outbox_turns';

  override up(): void {
    this.addSql(
      `alter table "outbox" add "task_queue" text null, add "priority" smallint not null default 3;`,
    );
    this.addSql(`alter table "outbox" alter column "priority" drop default;`);
    // The queue `mail` was split in two.
    this.addSql(`
      update "outbox" set "task_queue" = queue,
        "command" = jsonb_set(jsonb_set("command", '{start,taskQueue}', to_jsonb(queue)), '{start,priority}',
          jsonb_build_object('priorityKey', 3, 'fairnessKey', "org_id"))
      from (select "id" as started, case
          when "command" -> 'start' ->> 'taskQueue' <> 'mail' then "command" -> 'start' ->> 'taskQueue'
          when "command" -> 'start' ->> 'workflowType' = 'receiveMessage' then 'inbound'
          else 'outbound' end as queue
        from "outbox" where "command" ? 'start') as starts
      where "id" = started;`);
    this.addSql(
      `create index "outbox_turn_index" on "outbox" ("org_id", "priority", "available_at") where "dead_at" is null;`,
    );
  }
}
