import { isIP } from 'node:net';
import type { AddressPolicy } from './address-policy.ts';

export interface TargetRules {
  addresses: AddressPolicy;
  /** Ports besides 80, 443, 8080 and 8443; `any` for all. Never {@link BAD_PORTS}. */
  allowPorts: number[] | 'any';
  requireHttps: boolean;
}

export interface Target {
  url: URL;
  /** An IPv6 literal has no brackets here. */
  hostname: string;
  port: number;
  /** The host is an IP address and needs no DNS lookup. */
  literal: boolean;
  secure: boolean;
}

const DEFAULT_PORTS = [80, 443, 8080, 8443];

/**
 * Ports of services that would take an HTTP request for commands of their own protocol (WHATWG Fetch, "bad port").
 * Browsers refuse them, too.
 */
const BAD_PORTS = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

/**
 * Parses and checks a customer's URL before any DNS lookup. The WHATWG parser normalizes `2130706433`, `0x7f.1`,
 * `017700000001` and full-width digits to dotted form, so one check covers them all.
 */
export function parseTarget(text: string, rules: TargetRules): Target | { refusal: string } {
  const url = URL.parse(text);
  if (!url) return { refusal: 'the URL is invalid' };
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return { refusal: `${url.protocol.slice(0, 32)} is neither https: nor http:` };
  }
  const secure = url.protocol === 'https:';
  if (rules.requireHttps && !secure) return { refusal: 'the URL is not https' };
  if (url.username !== '' || url.password !== '') return { refusal: 'the URL contains credentials' };
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  if (BAD_PORTS.has(port)) return { refusal: `port ${port} is not for HTTP` };
  if (!isPortAllowed(port, rules)) return { refusal: `port ${port} is not allowed` };
  const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const literal = isIP(hostname) !== 0;
  const refusal = literal ? rules.addresses.findRefusal(hostname) : null;
  return refusal === null ? { url, hostname, port, literal, secure } : { refusal };
}

function isPortAllowed(port: number, { allowPorts }: TargetRules): boolean {
  return allowPorts === 'any' || DEFAULT_PORTS.includes(port) || allowPorts.includes(port);
}
