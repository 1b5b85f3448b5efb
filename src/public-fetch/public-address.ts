import ipaddr from 'ipaddr.js';

/** Platform services of Azure answer here, on an address that looks public. */
const PLATFORM_ADDRESSES = new Set(['168.63.129.16']);
/** All of IPv6 that is given out (RFC 4291 §2.4); what lies beside it may be read as an IPv4 address inside. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3') as [ipaddr.IPv6, number];

type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];
export type Ranges = readonly Range[];

/** @throws when a text is no range such as `10.0.0.0/8` or `fd00::/8`, or a single address */
export function parseRanges(texts: readonly string[]): Range[] {
  return texts.map((text) => {
    if (text.includes('/')) return ipaddr.parseCIDR(text);
    const address = ipaddr.parse(text);
    return [address, address.kind() === 'ipv4' ? 32 : 128];
  });
}

/**
 * Whether an address may be connected to: a public one, or one in a range that the operator allows.
 * @param text an IPv4 or IPv6 address without brackets
 */
export function mayReach(text: string, allowed: Ranges): boolean {
  return isPublic(ipaddr.parse(text)) || isAllowed(text, allowed);
}

/** Whether an address lies in a range that the operator allows. */
export function isAllowed(text: string, allowed: Ranges): boolean {
  // An IPv4 address in IPv6 clothes is reached as itself.
  const plain = ipaddr.process(text);
  return allowed.some(([range, bits]) => contains(range, bits, plain));
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.range() !== 'unicast' || PLATFORM_ADDRESSES.has(address.toString())) return false;
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_IPV6);
}

function contains(range: ipaddr.IPv4 | ipaddr.IPv6, bits: number, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (range instanceof ipaddr.IPv4) return address instanceof ipaddr.IPv4 && address.match([range, bits]);
  return address instanceof ipaddr.IPv6 && address.match([range, bits]);
}
