import { errors } from 'oidc-provider';

/** A network has registered too many clients. */
export class RegistrationLimitError extends errors.OIDCProviderError {
  readonly waitSeconds: number;
  constructor(waitSeconds: number) {
    super(429, 'temporarily_unavailable');
    this.waitSeconds = Math.max(1, waitSeconds);
    this.error_description = `Too many clients were registered from this network. Wait ${this.waitSeconds} s.`;
  }
}
