import { isIP } from 'node:net';
import type { AddressPolicy } from './address-policy.ts';

export interface TargetRules {
  addresses: AddressPolicy;
  /** Ports besides 80, 443, 8080 and 8443; `any` for all. */
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
  if (!isPortAllowed(port, rules)) return { refusal: `port ${port} is not allowed` };
  const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const literal = isIP(hostname) !== 0;
  const refusal = literal ? rules.addresses.findRefusal(hostname) : null;
  return refusal === null ? { url, hostname, port, literal, secure } : { refusal };
}

function isPortAllowed(port: number, { allowPorts }: TargetRules): boolean {
  return allowPorts === 'any' || DEFAULT_PORTS.includes(port) || allowPorts.includes(port);
}
