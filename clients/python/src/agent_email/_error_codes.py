"""A class for each code of an error. Errors with other codes are APIError itself.

Generated from the OpenAPI document by `npm run generate:clients`: do not edit.
"""

from __future__ import annotations

from typing import Dict, Type

from ._errors import APIError

__all__ = [
    "ValidationError",
    "OrganizationRequiredError",
    "MalformedJsonError",
    "InvalidCursorError",
    "UnauthenticatedError",
    "InvalidCredentialsError",
    "OauthFailedError",
    "SsoFailedError",
    "SessionExpiredError",
    "PermissionDeniedError",
    "AccountDeletedError",
    "OrganizationDeletedError",
    "OrganizationSuspendedError",
    "EnvironmentSuspendedError",
    "InboxSuspendedError",
    "PolicyViolationError",
    "PlanLimitReachedError",
    "SwitchedOffError",
    "NotFoundError",
    "FeatureDisabledError",
    "MethodNotAllowedError",
    "RequestTimeoutError",
    "SsoLinkRequiredError",
    "AccountExistsError",
    "AlreadyExistsError",
    "ConflictError",
    "RequestInProgressError",
    "PreconditionFailedError",
    "PayloadTooLargeError",
    "UnsupportedMediaTypeError",
    "DraftTargetNotFoundError",
    "NoRecipientsError",
    "DomainNotVerifiedError",
    "MessageRejectedError",
    "IdempotencyKeyReusedError",
    "UnprocessableError",
    "PreconditionRequiredError",
    "RateLimitedError",
    "UsageLimitExceededError",
    "InternalError",
    "UnavailableError",
]


class ValidationError(APIError):
    """The code `validation_error`."""


class OrganizationRequiredError(APIError):
    """The code `organization_required`."""


class MalformedJsonError(APIError):
    """The code `malformed_json`."""


class InvalidCursorError(APIError):
    """The code `invalid_cursor`."""


class UnauthenticatedError(APIError):
    """The code `unauthenticated`."""


class InvalidCredentialsError(APIError):
    """The code `invalid_credentials`."""


class OauthFailedError(APIError):
    """The code `oauth_failed`."""


class SsoFailedError(APIError):
    """The code `sso_failed`."""


class SessionExpiredError(APIError):
    """The code `session_expired`."""


class PermissionDeniedError(APIError):
    """The code `permission_denied`."""


class AccountDeletedError(APIError):
    """The code `account_deleted`."""


class OrganizationDeletedError(APIError):
    """The code `organization_deleted`."""


class OrganizationSuspendedError(APIError):
    """The code `organization_suspended`."""


class EnvironmentSuspendedError(APIError):
    """The code `environment_suspended`."""


class InboxSuspendedError(APIError):
    """The code `inbox_suspended`."""


class PolicyViolationError(APIError):
    """The code `policy_violation`."""


class PlanLimitReachedError(APIError):
    """The code `plan_limit_reached`."""


class SwitchedOffError(APIError):
    """The code `switched_off`."""


class NotFoundError(APIError):
    """The code `not_found`."""


class FeatureDisabledError(APIError):
    """The code `feature_disabled`."""


class MethodNotAllowedError(APIError):
    """The code `method_not_allowed`."""


class RequestTimeoutError(APIError):
    """The code `request_timeout`."""


class SsoLinkRequiredError(APIError):
    """The code `sso_link_required`."""


class AccountExistsError(APIError):
    """The code `account_exists`."""


class AlreadyExistsError(APIError):
    """The code `already_exists`."""


class ConflictError(APIError):
    """The code `conflict`."""


class RequestInProgressError(APIError):
    """The code `request_in_progress`."""


class PreconditionFailedError(APIError):
    """The code `precondition_failed`."""


class PayloadTooLargeError(APIError):
    """The code `payload_too_large`."""


class UnsupportedMediaTypeError(APIError):
    """The code `unsupported_media_type`."""


class DraftTargetNotFoundError(APIError):
    """The code `draft_target_not_found`."""


class NoRecipientsError(APIError):
    """The code `no_recipients`."""


class DomainNotVerifiedError(APIError):
    """The code `domain_not_verified`."""


class MessageRejectedError(APIError):
    """The code `message_rejected`."""


class IdempotencyKeyReusedError(APIError):
    """The code `idempotency_key_reused`."""


class UnprocessableError(APIError):
    """The code `unprocessable`."""


class PreconditionRequiredError(APIError):
    """The code `precondition_required`."""


class RateLimitedError(APIError):
    """The code `rate_limited`."""


class UsageLimitExceededError(APIError):
    """The code `usage_limit_exceeded`."""


class InternalError(APIError):
    """The code `internal`."""


class UnavailableError(APIError):
    """The code `unavailable`."""


ERRORS_BY_CODE: Dict[str, Type[APIError]] = {
    "validation_error": ValidationError,
    "organization_required": OrganizationRequiredError,
    "malformed_json": MalformedJsonError,
    "invalid_cursor": InvalidCursorError,
    "unauthenticated": UnauthenticatedError,
    "invalid_credentials": InvalidCredentialsError,
    "oauth_failed": OauthFailedError,
    "sso_failed": SsoFailedError,
    "session_expired": SessionExpiredError,
    "permission_denied": PermissionDeniedError,
    "account_deleted": AccountDeletedError,
    "organization_deleted": OrganizationDeletedError,
    "organization_suspended": OrganizationSuspendedError,
    "environment_suspended": EnvironmentSuspendedError,
    "inbox_suspended": InboxSuspendedError,
    "policy_violation": PolicyViolationError,
    "plan_limit_reached": PlanLimitReachedError,
    "switched_off": SwitchedOffError,
    "not_found": NotFoundError,
    "feature_disabled": FeatureDisabledError,
    "method_not_allowed": MethodNotAllowedError,
    "request_timeout": RequestTimeoutError,
    "sso_link_required": SsoLinkRequiredError,
    "account_exists": AccountExistsError,
    "already_exists": AlreadyExistsError,
    "conflict": ConflictError,
    "request_in_progress": RequestInProgressError,
    "precondition_failed": PreconditionFailedError,
    "payload_too_large": PayloadTooLargeError,
    "unsupported_media_type": UnsupportedMediaTypeError,
    "draft_target_not_found": DraftTargetNotFoundError,
    "no_recipients": NoRecipientsError,
    "domain_not_verified": DomainNotVerifiedError,
    "message_rejected": MessageRejectedError,
    "idempotency_key_reused": IdempotencyKeyReusedError,
    "unprocessable": UnprocessableError,
    "precondition_required": PreconditionRequiredError,
    "rate_limited": RateLimitedError,
    "usage_limit_exceeded": UsageLimitExceededError,
    "internal": InternalError,
    "unavailable": UnavailableError,
}
