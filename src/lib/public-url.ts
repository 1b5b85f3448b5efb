import { parse } from 'tldts';
import { isPublicAddress } from './ip-ranges.ts';

/**
 * Returns true if the host of a URL is on the public internet: a public address, or a name below a public top-level
 * domain. `localhost`, names without a dot and reserved endings such as `.internal` and `.home.arpa` are not public.
 */
export function isPublicUrl(url: string): boolean {
  const { hostname, isIp, isIcann, publicSuffix } = parse(new URL(url).href);
  if (hostname === null) return false;
  return isIp ? isPublicAddress(hostname) : isIcann === true && !/(?:^|\.)arpa$/.test(publicSuffix ?? '');
}
