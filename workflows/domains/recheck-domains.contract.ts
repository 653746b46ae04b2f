/** Contract of the daily recheck of verified domains, which runs on a schedule. */
export const RECHECK_DOMAINS = 'recheckDomains';
export const RECHECK_DOMAINS_SCHEDULE_ID = 'recheck-domains';
export const RECHECK_DOMAINS_INTERVAL_MS = 24 * 3_600_000;
