import { Migration } from '@mikro-orm/migrations';

export class Migration20261123055256_column_default_times extends Migration {
  override name = 'Migration20261123055256_column_default_times';

  override up(): void | Promise<void> {
    this.addSql(`alter table "announcements" alter column "created_at" set default now();`);

    this.addSql(`alter table "idempotency_keys" alter column "created_at" set default now();`);

    this.addSql(`alter table "installation_keys" alter column "created_at" set default now();`);

    this.addSql(`alter table "organizations" alter column "created_at" set default now();`);
    this.addSql(`alter table "organizations" alter column "updated_at" set default now();`);

    this.addSql(`alter table "notifications" alter column "created_at" set default now();`);

    this.addSql(`alter table "meter_reports" alter column "created_at" set default now();`);

    this.addSql(`alter table "limit_overrides" alter column "created_at" set default now();`);

    this.addSql(`alter table "invitations" alter column "created_at" set default now();`);

    this.addSql(`alter table "impersonations" alter column "created_at" set default now();`);

    this.addSql(`alter table "impersonated_operations" alter column "created_at" set default now();`);

    this.addSql(`alter table "exports" alter column "created_at" set default now();`);
    this.addSql(`alter table "exports" alter column "updated_at" set default now();`);

    this.addSql(`alter table "environments" alter column "created_at" set default now();`);
    this.addSql(`alter table "environments" alter column "updated_at" set default now();`);

    this.addSql(`alter table "events" alter column "created_at" set default now();`);

    this.addSql(`alter table "domains" alter column "created_at" set default now();`);
    this.addSql(`alter table "domains" alter column "updated_at" set default now();`);

    this.addSql(`alter table "inboxes" alter column "created_at" set default now();`);
    this.addSql(`alter table "inboxes" alter column "updated_at" set default now();`);

    this.addSql(`alter table "list_entries" alter column "created_at" set default now();`);

    this.addSql(`alter table "drafts" alter column "created_at" set default now();`);
    this.addSql(`alter table "drafts" alter column "updated_at" set default now();`);

    this.addSql(`alter table "dkim_keys" alter column "created_at" set default now();`);

    this.addSql(`alter table "billing_subscriptions" alter column "created_at" set default now();`);

    this.addSql(`alter table "billing_customers" alter column "created_at" set default now();`);
    this.addSql(`alter table "billing_customers" alter column "updated_at" set default now();`);

    this.addSql(`alter table "audit_entries" alter column "created_at" set default now();`);

    this.addSql(`alter table "approved_recipients" alter column "created_at" set default now();`);

    this.addSql(`alter table "api_keys" alter column "created_at" set default now();`);

    this.addSql(`alter table "organization_policies" alter column "updated_at" set default now();`);

    this.addSql(`alter table "outbox" alter column "created_at" set default now();`);

    this.addSql(`alter table "reputation_outcomes" alter column "created_at" set default now();`);

    this.addSql(`alter table "retention_policies" alter column "created_at" set default now();`);

    this.addSql(`alter table "sign_ups" alter column "created_at" set default now();`);

    this.addSql(`alter table "sso_configurations" alter column "created_at" set default now();`);
    this.addSql(`alter table "sso_configurations" alter column "updated_at" set default now();`);

    this.addSql(`alter table "sso_attempts" alter column "created_at" set default now();`);

    this.addSql(`alter table "sso_providers" alter column "created_at" set default now();`);

    this.addSql(`alter table "sso_setup_links" alter column "created_at" set default now();`);

    this.addSql(`alter table "sso_transactions" alter column "created_at" set default now();`);

    this.addSql(`alter table "staff_audit_entries" alter column "created_at" set default now();`);

    this.addSql(`alter table "staff_jobs" alter column "created_at" set default now();`);

    this.addSql(`alter table "suppressions" alter column "created_at" set default now();`);

    this.addSql(`alter table "suspensions" alter column "created_at" set default now();`);

    this.addSql(`alter table "threads" alter column "created_at" set default now();`);
    this.addSql(`alter table "threads" alter column "updated_at" set default now();`);

    this.addSql(`alter table "messages" alter column "created_at" set default now();`);
    this.addSql(`alter table "messages" alter column "updated_at" set default now();`);

    this.addSql(`alter table "message_recipients" alter column "updated_at" set default now();`);

    this.addSql(`alter table "attachments" alter column "created_at" set default now();`);

    this.addSql(`alter table "upgrade_requests" alter column "created_at" set default now();`);

    this.addSql(`alter table "users" alter column "created_at" set default now();`);
    this.addSql(`alter table "users" alter column "updated_at" set default now();`);

    this.addSql(`alter table "staff_members" alter column "created_at" set default now();`);

    this.addSql(`alter table "sso_identities" alter column "created_at" set default now();`);

    this.addSql(`alter table "sessions" alter column "created_at" set default now();`);

    this.addSql(`alter table "oauth_transactions" alter column "created_at" set default now();`);

    this.addSql(`alter table "mfa_recovery_codes" alter column "created_at" set default now();`);

    this.addSql(`alter table "oauth_identities" alter column "created_at" set default now();`);

    this.addSql(`alter table "mfa_enrollments" alter column "created_at" set default now();`);

    this.addSql(`alter table "mfa_challenges" alter column "created_at" set default now();`);

    this.addSql(`alter table "members" alter column "created_at" set default now();`);

    this.addSql(`alter table "known_devices" alter column "created_at" set default now();`);

    this.addSql(`alter table "account_tokens" alter column "created_at" set default now();`);

    this.addSql(`alter table "webauthn_challenges" alter column "created_at" set default now();`);

    this.addSql(`alter table "webhook_endpoints" alter column "created_at" set default now();`);
    this.addSql(`alter table "webhook_endpoints" alter column "updated_at" set default now();`);

    this.addSql(`alter table "webhook_deliveries" alter column "created_at" set default now();`);

    this.addSql(`alter table "webhook_bulk_jobs" alter column "created_at" set default now();`);
  }
}
