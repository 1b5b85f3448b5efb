import { isInRanges, isPublicAddress, type Ranges } from '../lib/ip-ranges.ts';

/**
 * Returns true for a public address, or one in a range that the operator allows.
 * @param text an IPv4 or IPv6 address without brackets
 */
export function mayReach(text: string, allowed: Ranges): boolean {
  return isPublicAddress(text) || isInRanges(text, allowed);
}
