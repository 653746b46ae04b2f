-- Triggers, as MikroORM generates them from the entities. Their functions are files of migrations/functions.

create trigger "signal_organizations_access" after update on "organizations" for each row when (old.status is distinct from new.status or old.deleted_at is distinct from new.deleted_at) execute function "signal_access"();
create trigger "claim_slug" after insert on "organizations" for each row execute function "claim_slug"();
create trigger "claim_changed_slug" after update on "organizations" for each row when (old.slug is distinct from new.slug) execute function "claim_slug"();
create trigger "release_slug" after delete on "organizations" for each row execute function "claim_slug"();
create trigger "signal_impersonations_access" after update on "impersonations" for each row when (old.ended_at is distinct from new.ended_at) execute function "signal_access"();
create trigger "signal_environments_access" after update on "environments" for each row when (old.status is distinct from new.status) execute function "signal_access"();
create trigger "signal_environments_access_end" after delete on "environments" for each row execute function "signal_access"();
create trigger "signal_event" after insert on "events" for each row execute function "signal_event"();
create trigger "signal_inboxes_access" after update on "inboxes" for each row when (old.status is distinct from new.status) execute function "signal_access"();
create trigger "release_submission" after delete on "drafts" for each row when (old.submission is not null) execute function "release_submission"();
create trigger "signal_api_keys_access" after update on "api_keys" for each row when (old.revoked_at is distinct from new.revoked_at or old.expires_at is distinct from new.expires_at
        or old.token_hash is distinct from new.token_hash or old.previous_token_hash is distinct from new.previous_token_hash
        or old.previous_expires_at is distinct from new.previous_expires_at or old.permissions is distinct from new.permissions
        or old.allowed_cidrs is distinct from new.allowed_cidrs) execute function "signal_access"();
create trigger "signal_organization_policies_access_begin" after insert on "organization_policies" for each row execute function "signal_access"();
create trigger "signal_organization_policies_access" after update on "organization_policies" for each row execute function "signal_access"();
create trigger "signal_sso_access" after update on "sso_configurations" for each row when (old.status is distinct from new.status) execute function "signal_access"();
create trigger "signal_sso_access_end" after delete on "sso_configurations" for each row when (old.status = 'active') execute function "signal_access"();
create trigger "reindex_content" after update on "messages" for each row when (old.parse_error is distinct from new.parse_error) execute function "reindex_message_content"();
create trigger "release_objects" after delete on "messages" for each row execute function "release_message_objects"();
create trigger "index_message" after insert on "messages" for each row execute function "index_message"();
create trigger "reindex_labels" after update on "messages" for each row when (old.labels is distinct from new.labels) execute function "reindex_message_labels"();
create trigger "reindex_thread" after update on "messages" for each row when (old.thread_id is distinct from new.thread_id) execute function "reindex_message_thread"();
create trigger "count_insert" after insert on "messages" for each row when (coalesce(new.sent_at, new.delivered_at, new.bounced_at, new.complained_at, new.received_at) is not null
        or new.status = 'rejected') execute function "count_message"();
create trigger "count_update" after update on "messages" for each row when (old.sent_at is distinct from new.sent_at or old.delivered_at is distinct from new.delivered_at
        or old.bounced_at is distinct from new.bounced_at or old.complained_at is distinct from new.complained_at
        or old.received_at is distinct from new.received_at or old.announced is distinct from new.announced
        or new.status = 'rejected' and old.status <> 'rejected') execute function "count_message"();
create trigger "attachments_release_object" after delete on "attachments" for each row execute function "release_attachment_object"();
create trigger "attachments_count_added" after insert on "attachments" referencing new table as changed for each statement execute function "count_storage"();
create trigger "attachments_count_removed" after delete on "attachments" referencing old table as changed for each statement execute function "count_storage"();
create trigger "attachments_index_added" after insert on "attachments" referencing new table as changed for each statement execute function "index_attachments"();
create trigger "attachments_index_moved" after update on "attachments" referencing new table as changed for each statement execute function "index_attachments"();
create trigger "signal_users_access" after update on "users" for each row when (old.status is distinct from new.status or old.deleted_at is distinct from new.deleted_at) execute function "signal_access"();
create trigger "signal_staff_members_access" after update on "staff_members" for each row when (old.role is distinct from new.role) execute function "signal_access"();
create trigger "signal_staff_members_access_end" after delete on "staff_members" for each row execute function "signal_access"();
create trigger "signal_sessions_access" after update on "sessions" for each row when (old.revoked_at is distinct from new.revoked_at) execute function "signal_access"();
create trigger "signal_sessions_access_end" after delete on "sessions" for each row execute function "signal_access"();
create trigger "signal_members_access" after update on "members" for each row when (old.role is distinct from new.role) execute function "signal_access"();
create trigger "signal_members_access_end" after delete on "members" for each row execute function "signal_access"();
create trigger "signal_connections_access" after update on "connections" for each row when (old.ended_at is distinct from new.ended_at) execute function "signal_access"();
