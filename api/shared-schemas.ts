import {
  ApiKeyRecord,
  CreateApiKey,
  CreatedApiKey,
  RotateApiKey,
  UpdateApiKey,
} from './api-keys/api-keys.schemas.ts';
import { AttachmentInput, AttachmentRecord, UploadRecord } from './attachments/attachments.schemas.ts';
import { CreateListEntry, ListEntryReceipt, ListEntryRecord } from './deliverability/lists.schemas.ts';
import {
  CreateSuppression,
  SuppressionReceipt,
  SuppressionRecord,
} from './deliverability/suppressions.schemas.ts';
import { CreateDomain, DomainReceipt, DomainRecordSchema } from './domains/domains.schemas.ts';
import { DraftFields, DraftReceipt, DraftRecord } from './drafts/drafts.schemas.ts';
import { EventRecord, eventSchemas } from './events/events.schemas.ts';
import { ExportRecord } from './exports/exports.schemas.ts';
import { CredentialsRecord, RotatedCredentials } from './inboxes/credentials.routes.ts';
import { CreateInbox, InboxReceipt, InboxRecord, UpdateInbox } from './inboxes/inboxes.schemas.ts';
import { Address, AddressSeen } from './messages/addresses.ts';
import { Labels } from './messages/labels.routes.ts';
import {
  MessageListItem,
  MessageReceipt,
  MessageRecord,
  MessageSummary,
  SendMessage,
} from './messages/messages.schemas.ts';
import { RawMessage } from './messages/raw.routes.ts';
import { ThreadRecord, ThreadSummary } from './messages/threads.schemas.ts';
import {
  Metrics,
  MetricsActivity,
  MetricsDeliverability,
  MetricsSummary,
} from './metrics/metrics.schemas.ts';
import { AuditEntryRecord } from './organizations/audit-log.routes.ts';
import {
  ChangeRole,
  MemberReceipt,
  MemberRecord,
  OffboardingReceipt,
  OffboardingRecord,
  OffboardMember,
} from './organizations/members.routes.ts';
import { EnvironmentRecord, OrganizationRecord } from './organizations/organization.schemas.ts';
import { PoliciesRecord, UpdatePolicies } from './organizations/policies.routes.ts';
import { ForwardMessage, ReplyToMessage } from './outbound/replies.routes.ts';
import {
  Accepted,
  ChangeEmail,
  ChangePassword,
  ForgotPassword,
  MailedToken,
  MembershipRecord,
  MfaRequired,
  ResetPassword,
  SessionCreated,
  SignIn,
  SignUp,
  SignUpAccepted,
  UpdateUser,
  UserRecord,
  VerifiedSignUp,
  VerifyEmail,
} from './people/auth.schemas.ts';
import {
  CompleteMfa,
  MfaEnrollmentRecord,
  MfaStatus,
  RecoveryCodes,
  SetUpTotp,
  TotpSetup,
  TotpVerified,
  VerifyTotp,
} from './people/mfa.schemas.ts';
import { RevokeAllSessions, SessionRecord } from './people/sessions.schemas.ts';
import { RawMailResult } from './providers/raw-mail.routes.ts';
import {
  PostponeRetention,
  RetentionPolicyReceipt,
  RetentionPolicyRecord,
  SetRetentionPolicy,
} from './retention/retention-policy.schemas.ts';
import { Problem } from './schemas.ts';
import {
  LimitsReceipt,
  LimitsRecord,
  SetLimits,
  UsageEventRecord,
  UsageHistory,
  UsageRecord,
} from './usage/usage.schemas.ts';
import {
  BulkJobReceipt,
  BulkJobRecord,
  DeliveryReceipt,
  DeliveryRecord,
  DeliverySummary,
  ReplayEvents,
  RotateSecret,
  SendTestEvent,
} from './webhooks/deliveries.schemas.ts';
import {
  CreatedEndpoint,
  CreatedEndpointReceipt,
  CreateEndpoint,
  EndpointReceipt,
  EndpointRecord,
  UpdateEndpoint,
} from './webhooks/endpoints.schemas.ts';

/** Named schemas. Each follows the schemas it refers to. */
export const sharedSchemas = [
  Problem,
  Address,
  AddressSeen,
  AttachmentInput,
  UploadRecord,
  AttachmentRecord,
  OrganizationRecord,
  EnvironmentRecord,
  ApiKeyRecord,
  CreateApiKey,
  CreatedApiKey,
  UpdateApiKey,
  RotateApiKey,
  DomainRecordSchema,
  DomainReceipt,
  CreateDomain,
  InboxRecord,
  InboxReceipt,
  CreateInbox,
  UpdateInbox,
  CredentialsRecord,
  RotatedCredentials,
  DraftRecord,
  DraftReceipt,
  DraftFields,
  MessageSummary,
  MessageRecord,
  MessageListItem,
  MessageReceipt,
  SendMessage,
  Labels,
  RawMessage,
  ReplyToMessage,
  ForwardMessage,
  RawMailResult,
  ThreadSummary,
  ThreadRecord,
  EndpointRecord,
  EndpointReceipt,
  CreatedEndpoint,
  CreatedEndpointReceipt,
  CreateEndpoint,
  UpdateEndpoint,
  RotateSecret,
  SendTestEvent,
  ReplayEvents,
  DeliverySummary,
  DeliveryReceipt,
  DeliveryRecord,
  BulkJobRecord,
  BulkJobReceipt,
  EventRecord,
  ...eventSchemas,
  MetricsSummary,
  MetricsActivity,
  MetricsDeliverability,
  Metrics,
  UsageRecord,
  LimitsRecord,
  LimitsReceipt,
  SetLimits,
  UsageHistory,
  UsageEventRecord,
  SuppressionRecord,
  SuppressionReceipt,
  CreateSuppression,
  ListEntryRecord,
  ListEntryReceipt,
  CreateListEntry,
  RetentionPolicyRecord,
  RetentionPolicyReceipt,
  SetRetentionPolicy,
  PostponeRetention,
  ExportRecord,
  SessionRecord,
  RevokeAllSessions,
  MembershipRecord,
  UserRecord,
  SignUp,
  SignUpAccepted,
  Accepted,
  VerifyEmail,
  SignIn,
  SessionCreated,
  MfaRequired,
  VerifiedSignUp,
  ForgotPassword,
  ResetPassword,
  ChangePassword,
  ChangeEmail,
  MailedToken,
  UpdateUser,
  MfaEnrollmentRecord,
  MfaStatus,
  SetUpTotp,
  TotpSetup,
  VerifyTotp,
  TotpVerified,
  RecoveryCodes,
  CompleteMfa,
  PoliciesRecord,
  UpdatePolicies,
  AuditEntryRecord,
  MemberRecord,
  MemberReceipt,
  OffboardMember,
  OffboardingRecord,
  OffboardingReceipt,
  ChangeRole,
];
