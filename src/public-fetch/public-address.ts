import { isInRanges, isPublicAddress, type Ranges } from '../lib/ip-ranges.ts';

/**
 * Returns true for a public address, or one in a range that the operator allows.
 * @param text an IPv4 or IPv6 address without brackets
 */
export function mayReach(text: string, allowed: Ranges): boolean {
  return isPublicAddress(text) || isInRanges(text, allowed);
}

/** The addresses of `localhost`. */
export const LOOPBACK = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
] as const;

/**
 * Returns true for a name that resolves to this machine (RFC 6761 §6.3).
 * @param name without a dot at the end
 */
export function isLocalhost(name: string): boolean {
  return /(?:^|\.)localhost$/.test(name);
}
