import { parseDomain } from '../domain/email/address.ts';
import { controlProblem } from '../lib/text.ts';
import { ServiceError } from '../domain/errors.ts';

/**
 * A domain as it is kept, a lower-case A-label, from what somebody wrote.
 * @throws ServiceError validation_error
 */
export function domainName(text: string, param: string): string {
  // Blanks around it are nobody's mistake; line breaks, which trimming would drop likewise, are.
  const name = controlProblem(text) === undefined ? parseDomain(text.trim()) : undefined;
  if (name === undefined) throw new ServiceError('validation_error', `${text} is not a domain name`, param);
  return name;
}
