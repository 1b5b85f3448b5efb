import { ServiceError } from '../domain/errors.ts';
import { isInRanges, type Ranges } from '../lib/ip-ranges.ts';
import { isLocalhost, LOOPBACK } from './public-address.ts';
import { literalAddress, NOT_PUBLIC, parseFetchableUrl } from './public-url.ts';
import { Unfetchable } from './unfetchable.ts';

/**
 * Parses the URL of a webhook endpoint. It must be https on the public internet, or http or https in the allowed ranges of the
 * operator's network. Resolved addresses are checked again at the connection.
 * @throws Unfetchable
 */
export function endpointUrl(text: string, allowed: Ranges): URL {
  // The URL parser would remove white space and line breaks instead of rejecting them.
  if (/[\s\p{Cc}]/u.test(text)) throw new Unfetchable('it holds white space or control characters');
  // The URL parser would replace lone surrogates.
  if (!text.isWellFormed()) throw new Unfetchable('it is not well-formed Unicode');
  const url = parseFetchableUrl(text, allowed);
  const original = new URL(text);
  if (original.username !== '' || original.password !== '') throw new Unfetchable('it holds a user name or a password');
  const name = url.hostname.replace(/\.$/, '');
  if (isLocalhost(name) && !LOOPBACK.some(({ address }) => isInRanges(address, allowed))) {
    throw new Unfetchable(NOT_PUBLIC);
  }
  if (url.protocol === 'http:') {
    const address = literalAddress(url);
    const isReachable = address === undefined ? allowed.length > 0 : isInRanges(address, allowed);
    if (!isReachable) throw new Unfetchable('it is not an https URL');
  }
  return url;
}

/** Runs a check of the URL in a field. @throws ServiceError validation_error for what the check throws as Unfetchable */
export function requireFetchable(param: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof Unfetchable)) throw error;
    throw new ServiceError('validation_error', `must be an https URL on the public internet: ${error.message}`, param);
  }
}
