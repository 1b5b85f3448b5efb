import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Range = readonly [Address, number];
export type Ranges = readonly Range[];

/** Bits before the IPv4 address in an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2). */
const MAPPED_BITS = 96;

/** The addresses of this machine itself. */
export const LOOPBACK_RANGES = ['127.0.0.0/8', '::1'] as const;

/** @throws for text that is neither a range such as `10.0.0.0/8` or `fd00::/8` nor a single address */
export function parseRanges(texts: readonly string[]): Range[] {
  return texts.map(parseRange);
}

function parseRange(text: string): Range {
  const [address, bits] = text.includes('/') ? ipaddr.parseCIDR(text) : singleAddressRange(ipaddr.parse(text));
  const isMapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= MAPPED_BITS;
  return isMapped ? [address.toIPv4Address(), bits - MAPPED_BITS] : [address, bits];
}

function singleAddressRange(address: Address): [Address, number] {
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

/** Returns true if an address is in one of the ranges. An IPv4-mapped IPv6 address counts as its IPv4 address. */
export function isInRanges(text: string, allowed: Ranges): boolean {
  if (!ipaddr.isValid(text)) return false;
  const plain = ipaddr.process(text);
  return allowed.some(([range, bits]) => contains(range, bits, plain));
}

function contains(range: Address, bits: number, address: Address): boolean {
  if (range instanceof ipaddr.IPv4) return address instanceof ipaddr.IPv4 && address.match([range, bits]);
  return address instanceof ipaddr.IPv6 && address.match([range, bits]);
}

/** Returns true if one range of `outer` contains every address of `inner`. */
export function isWithin(inner: Range, outer: Ranges): boolean {
  const [address, bits] = inner;
  return outer.some(([range, rangeBits]) => bits >= rangeBits && contains(range, rangeBits, address));
}

/** Azure's platform services use this address, which looks public. */
const PLATFORM_ADDRESSES = new Set(['168.63.129.16']);
/** All allocated IPv6 addresses (RFC 4291 §2.4); others may map to an internal IPv4 address. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3') as [ipaddr.IPv6, number];

/** Returns true for an IPv4 or IPv6 address, without brackets, of the public internet, and false for other text. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== 'unicast' || PLATFORM_ADDRESSES.has(address.toString())) return false;
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_IPV6);
}

/** The prefix length of the smallest IPv6 network of one site (RFC 6177): a site can use any number of addresses in it. */
const IPV6_NETWORK_BITS = 64;

/**
 * Returns the network by which an address is counted: an IPv4 address itself, the /64 of an IPv6 address
 * (`2001:db8:1:2::/64`). An IPv4-mapped IPv6 address counts as its IPv4 address. Other text is returned unchanged.
 */
export function networkOf(address: string): string {
  // A zone names an interface of this machine and is not part of the network.
  const text = address.replace(/%.*$/s, '');
  if (!ipaddr.isValid(text)) return address;
  const parsed = ipaddr.process(text);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  return ipv6Network(parsed, IPV6_NETWORK_BITS);
}

function ipv6Network(address: ipaddr.IPv6, bits: number): string {
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address.toString()}/${bits}`).toString()}/${bits}`;
}

/** What one customer of a provider gets: many networks of one site (RFC 6177). */
const IPV6_CUSTOMER_BITS = [48, 56];

/** Returns the networks that contain an address, from that of a customer to `networkOf`: only the last one for IPv4. */
export function networksOf(address: string): string[] {
  const network = networkOf(address);
  const [base = ''] = network.split('/');
  if (!ipaddr.IPv6.isValid(base)) return [network];
  return [...IPV6_CUSTOMER_BITS.map((bits) => ipv6Network(ipaddr.IPv6.parse(base), bits)), network];
}

const RANGE_PROBLEM = 'must be an IPv4 or IPv6 address, or a range such as 203.0.113.0/24 or 2001:db8::/32';

/** Returns why text is not an address or range: IPv4 needs four decimal numbers, IPv6 must have no zone. */
export function rangeProblem(text: string): string | undefined {
  const [address = '', ...bits] = text.split('/');
  const isPlain =
    ipaddr.IPv4.isValidFourPartDecimal(address) || (ipaddr.IPv6.isValid(address) && /^[0-9a-f:.]+$/i.test(address));
  if (!isPlain || bits.length > 1 || !bits.every((each) => /^\d{1,3}$/.test(each))) return RANGE_PROBLEM;
  try {
    parseRange(text);
    return undefined;
  } catch {
    return RANGE_PROBLEM;
  }
}
