import { IdempotencyKeyEntity } from '../platform/idempotency/idempotency-key.entity.ts';
import { InstallationEntity } from '../platform/installation/installation.entity.ts';
import { InstallationKeyEntity } from '../platform/installation/installation-key.entity.ts';
import { RestoreEntity } from '../platform/installation/restore.entity.ts';
import { OutboxEntity } from '../platform/outbox/outbox.entity.ts';
import { RateBucketEntity } from '../platform/rate-limit/rate-bucket.entity.ts';
import { AnnouncementEntity } from './announcements/announcement.entity.ts';
import { ApiKeyEntity } from './api-keys/api-key.entity.ts';
import { AttachmentEntity } from './attachments/attachment.entity.ts';
import { AuditEntryEntity } from './audit/audit-entry.entity.ts';
import { BillingMeterEntity, MeterReportEntity } from './billing/meter.entity.ts';
import { PaymentGraceEntity } from './billing/payment-grace.entity.ts';
import {
  BillingCustomerEntity,
  BillingSubscriptionEntity,
  StripeEventEntity,
} from './billing/subscription.entity.ts';
import {
  ConnectionClientEntity,
  ConnectionEntity,
  ConnectionTokenEntity,
} from './connections/connection.entity.ts';
import { DeletionEntity } from './deletions/deletion.entity.ts';
import { InboxDailySendsEntity, SharedDomainCapEntity } from './deliverability/daily-allowance.entity.ts';
import { ListEntryEntity } from './deliverability/list-entry.entity.ts';
import { ReputationOutcomeEntity } from './deliverability/reputation-outcome.entity.ts';
import { SuppressionEntity } from './deliverability/suppression.entity.ts';
import { DkimKeyEntity, DomainEntity } from './domains/domain.entity.ts';
import { ApprovalDigestEntity, ApprovedRecipientEntity } from './drafts/approval.entity.ts';
import { DraftEntity } from './drafts/draft.entity.ts';
import { EventEntity } from './events/event.entity.ts';
import { ExportEntity } from './exports/export.entity.ts';
import { ImpersonatedOperationEntity, ImpersonationEntity } from './impersonation/impersonation.entity.ts';
import { ReceiptEntity } from './inbound/receipt.entity.ts';
import { UnattributedReportEntity } from './inbound/unattributed-report.entity.ts';
import { AddressClaimEntity, InboxCredentialEntity, InboxEntity } from './inboxes/inbox.entity.ts';
import { InvitationEntity } from './invitations/invitation.entity.ts';
import { InjectionAlarmEntity } from './messages/injection-alarm.entity.ts';
import { MessageEntity, RecipientEntity } from './messages/message.entity.ts';
import { MessageSearchEntity } from './messages/message-search.entity.ts';
import { ThreadEntity, ThreadMessageIdEntity } from './messages/thread.entity.ts';
import { MetricDeltaEntity, MetricHourEntity } from './metrics/metric.entity.ts';
import { ProcessEntity, SweepEntity } from './monitoring/monitoring.entity.ts';
import { NotificationEntity } from './notifications/notification.entity.ts';
import { OauthIdentityEntity, OauthTransactionEntity } from './oauth/oauth.entity.ts';
import { EnvironmentEntity } from './organizations/environment.entity.ts';
import { MemberEntity } from './organizations/member.entity.ts';
import { OrganizationEntity, ReleasedSlugEntity } from './organizations/organization.entity.ts';
import { SendAttemptEntity } from './outbound/send-attempt.entity.ts';
import {
  MfaChallengeEntity,
  MfaEnrollmentEntity,
  RecoveryCodeEntity,
  SignInAttemptsEntity,
  WebauthnChallengeEntity,
} from './people/sign-in.entity.ts';
import { SignUpEntity } from './people/sign-up.entity.ts';
import { AccountTokenEntity, UserEntity } from './people/user.entity.ts';
import { OrganizationPoliciesEntity } from './policies/organization-policies.entity.ts';
import { RefusalEntity } from './refusals/refusal.entity.ts';
import { ApiRequestEntity } from './requests/api-request.entity.ts';
import { RetentionPolicyEntity } from './retention/retention-policy.entity.ts';
import { KnownDeviceEntity, SessionEntity } from './sessions/session.entity.ts';
import { SsoConfigurationEntity } from './sso/sso-configuration.entity.ts';
import { SsoIdentityEntity, SsoProviderEntity } from './sso/sso-identity.entity.ts';
import { SsoAssertionEntity, SsoAttemptEntity, SsoTransactionEntity } from './sso/sso-login.entity.ts';
import { SsoSetupLinkEntity } from './sso/sso-setup-link.entity.ts';
import { StaffAuditEntryEntity, StaffMemberEntity } from './staff/staff.entity.ts';
import { UnclaimedObjectEntity } from './stored-objects/unclaimed-object.entity.ts';
import { SuspensionEntity } from './suspensions/suspension.entity.ts';
import { ToggleEntity } from './toggles/toggle.entity.ts';
import { UpgradeRequestEntity } from './upgrade-requests/upgrade-request.entity.ts';
import { CustomLimitEntity, LimitOverrideEntity } from './usage/limit.entity.ts';
import {
  UsageCounterEntity,
  UsageDeltaEntity,
  UsageEventEntity,
  UsageHourEntity,
} from './usage/usage.entity.ts';
import { UsageAlertEntity } from './usage-alerts/usage-alert.entity.ts';
import { BulkJobEntity } from './webhooks/bulk-job.entity.ts';
import { DeliveryAttemptEntity, WebhookDeliveryEntity } from './webhooks/delivery.entity.ts';
import { WebhookEndpointEntity, WebhookSlotEntity } from './webhooks/endpoint.entity.ts';
import { StaffJobEntity } from './workflow-runs/staff-job.entity.ts';

/** Every table the ORM knows, for the processes, the migrations and the guard tests. */
export const entities = [
  OrganizationEntity,
  EnvironmentEntity,
  ReleasedSlugEntity,
  ImpersonationEntity,
  ImpersonatedOperationEntity,
  UserEntity,
  MemberEntity,
  InvitationEntity,
  SessionEntity,
  KnownDeviceEntity,
  StaffMemberEntity,
  StaffAuditEntryEntity,
  StaffJobEntity,
  MfaEnrollmentEntity,
  SignUpEntity,
  AccountTokenEntity,
  SignInAttemptsEntity,
  MfaChallengeEntity,
  WebauthnChallengeEntity,
  OauthIdentityEntity,
  OauthTransactionEntity,
  ConnectionClientEntity,
  ConnectionEntity,
  ConnectionTokenEntity,
  RecoveryCodeEntity,
  OrganizationPoliciesEntity,
  AuditEntryEntity,
  SsoConfigurationEntity,
  SuspensionEntity,
  ToggleEntity,
  UpgradeRequestEntity,
  ProcessEntity,
  AnnouncementEntity,
  SsoSetupLinkEntity,
  SsoTransactionEntity,
  SsoProviderEntity,
  SsoIdentityEntity,
  SsoAssertionEntity,
  SsoAttemptEntity,
  BillingCustomerEntity,
  BillingMeterEntity,
  MeterReportEntity,
  BillingSubscriptionEntity,
  StripeEventEntity,
  PaymentGraceEntity,
  DeletionEntity,
  DomainEntity,
  DkimKeyEntity,
  InboxEntity,
  AddressClaimEntity,
  InboxCredentialEntity,
  ApiKeyEntity,
  ThreadEntity,
  ThreadMessageIdEntity,
  MessageEntity,
  InjectionAlarmEntity,
  MessageSearchEntity,
  RecipientEntity,
  SendAttemptEntity,
  SharedDomainCapEntity,
  InboxDailySendsEntity,
  ReceiptEntity,
  AttachmentEntity,
  UnclaimedObjectEntity,
  DraftEntity,
  ApprovedRecipientEntity,
  ApprovalDigestEntity,
  EventEntity,
  WebhookEndpointEntity,
  WebhookDeliveryEntity,
  DeliveryAttemptEntity,
  WebhookSlotEntity,
  NotificationEntity,
  RetentionPolicyEntity,
  BulkJobEntity,
  UnattributedReportEntity,
  SuppressionEntity,
  RefusalEntity,
  ApiRequestEntity,
  SweepEntity,
  ListEntryEntity,
  ReputationOutcomeEntity,
  MetricHourEntity,
  MetricDeltaEntity,
  UsageCounterEntity,
  UsageHourEntity,
  UsageDeltaEntity,
  UsageEventEntity,
  UsageAlertEntity,
  LimitOverrideEntity,
  CustomLimitEntity,
  ExportEntity,
  OutboxEntity,
  IdempotencyKeyEntity,
  InstallationEntity,
  InstallationKeyEntity,
  RateBucketEntity,
  RestoreEntity,
];
