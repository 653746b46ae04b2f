import type { Config } from '../../platform/config.ts';
import { splitList } from '../../platform/config.ts';
import { invalid } from '../../platform/errors.ts';

/**
 * Checks the URLs to which Stripe redirects people. An open redirect would make any page appear to be a part of the service.
 */
export interface Redirects {
  /** @throws AppError `validation_error` for a URL of another origin. */
  check(path: string, url: string): string;
}

export function createRedirects(config: Pick<Config, 'BILLING_REDIRECT_ORIGINS' | 'PUBLIC_URL'>): Redirects {
  const named = splitList(config.BILLING_REDIRECT_ORIGINS);
  const origins = new Set((named.length > 0 ? named : [config.PUBLIC_URL]).map((url) => new URL(url).origin));
  // The billing page is always allowed.
  origins.add(new URL(config.PUBLIC_URL).origin);
  return {
    check(path, url) {
      const target = URL.canParse(url) ? new URL(url) : undefined;
      // A blob: URL has the origin of the page that created it.
      const isPage = target?.protocol === 'https:' || target?.protocol === 'http:';
      if (target && isPage && origins.has(target.origin) && target.username === '' && target.password === '')
        return target.href;
      throw invalid(
        path,
        'is not a URL to which Stripe may send people back',
        `Use a URL of one of these origins: ${[...origins].join(', ')}.`,
      );
    },
  };
}
