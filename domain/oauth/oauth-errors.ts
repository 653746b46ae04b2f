import { AppError } from '../../platform/errors.ts';
import type { OauthProvider } from '../../platform/oauth-providers.ts';

type Named = Pick<OauthProvider, 'name'>;

/** The same error for every cause, which only the log names. */
export function oauthFailed({ name }: Named): AppError {
  return new AppError('oauth_failed', {
    detail: `The sign-in with ${name} failed or was canceled, has expired, or was started in another browser.`,
    fix: 'Start again, and finish within ten minutes in the same browser.',
  });
}

export function oauthUnavailable({ name }: Named): AppError {
  return new AppError('unavailable', {
    detail: `${name} does not respond.`,
    fix: 'Try again later, or sign in another way.',
  });
}

export function accountExists({ name }: Named): AppError {
  return new AppError('account_exists', {
    detail: `The address that ${name} states has an account here, which is not linked with it.`,
    fix: 'Sign in to the account as before, and link the provider: POST /api/v1/user/me/oauth-providers/{provider}/link.',
  });
}

export function emailNotVerified({ name }: Named): AppError {
  return new AppError('unprocessable', {
    detail: `${name} does not prove an email address that an account can have.`,
    fix: 'Sign up with your address first, and link the provider to that account.',
  });
}

export function linkedElsewhere({ name }: Named): AppError {
  return new AppError('already_exists', {
    detail: `This ${name} account is linked with another account here.`,
    fix: 'Sign in to that account and unlink it, or link another one.',
  });
}

export function otherIdentityLinked({ name }: Named): AppError {
  return new AppError('conflict', {
    detail: `Another ${name} account is linked with your account.`,
    fix: 'Unlink it first.',
  });
}

/**
 * Messages and codes of an error and its causes, for the log. They contain no code, token or text of a provider. The message
 * of a syntax error is left out, because it quotes the text.
 */
export function describeFailure(error: unknown): string {
  const parts: string[] = [];
  for (let current = error, depth = 0; current instanceof Error && depth < 5; depth += 1) {
    if (current instanceof SyntaxError) break;
    const { code } = current as { code?: unknown };
    parts.push(typeof code === 'string' ? `${current.message} (${code})` : current.message);
    current = current.cause;
  }
  return parts.join(': ');
}
