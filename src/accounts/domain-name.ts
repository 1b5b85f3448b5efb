import { parseDomain } from '../domain/email/address.ts';
import { DOMAIN_OCTETS } from '../domain/limits.ts';
import { controlProblem } from '../lib/text.ts';
import { ServiceError } from '../domain/errors.ts';

/** Normalizes a domain name to a lower-case A-label. @throws ServiceError validation_error */
export function domainName(text: string, param: string): string {
  if (text.length > DOMAIN_OCTETS) {
    throw new ServiceError('validation_error', `must be at most ${DOMAIN_OCTETS} characters`, param);
  }
  // Ignore surrounding blanks. Reject line breaks first, because trimming would remove them too.
  const name = controlProblem(text) === undefined ? parseDomain(hostIn(text.trim())) : undefined;
  if (name === undefined) throw new ServiceError('validation_error', `"${text}" is not a domain name`, param);
  return name;
}

/** Returns the host of a web address, which people paste as the name of their domain; other text unchanged. */
function hostIn(text: string): string {
  return /^https?:\/\/(?:[^/?#@]*@)?([^/?#:]+)(?::\d*)?(?:[/?#].*)?$/i.exec(text)?.[1] ?? text;
}
