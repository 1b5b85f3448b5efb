import ipaddr from 'ipaddr.js';
import { isAllowed, type Ranges } from '../domain/ip-ranges.ts';

/** Platform services of Azure answer here, on an address that looks public. */
const PLATFORM_ADDRESSES = new Set(['168.63.129.16']);
/** All of IPv6 that is given out (RFC 4291 §2.4); what lies beside it may be read as an IPv4 address inside. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3') as [ipaddr.IPv6, number];

/**
 * Whether an address may be connected to: a public one, or one in a range that the operator allows.
 * @param text an IPv4 or IPv6 address without brackets
 */
export function mayReach(text: string, allowed: Ranges): boolean {
  return isPublic(ipaddr.parse(text)) || isAllowed(text, allowed);
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.range() !== 'unicast' || PLATFORM_ADDRESSES.has(address.toString())) return false;
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_IPV6);
}
