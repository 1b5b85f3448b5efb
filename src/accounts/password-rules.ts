import { refuseProblem } from '../domain/errors.ts';
import { characters } from '../lib/text.ts';
import { findOrganizationNames } from '../store/accounts/users.ts';
import type { Db } from '../store/postgres/pool.ts';

const LENGTH = { min: 8, max: 200 } as const;
/** Shorter names and parts of addresses occur in any password. */
const MIN_OWN_LENGTH = 3;
const COMMON = 'must not be a common password, with or without digits at its end';
const OWN = 'must not be your address, your name or the name of your organization, with or without digits around it';

/** The user of a new password. */
export interface PasswordOwner {
  readonly email: string;
  readonly name: string;
  /** The organization that the user is about to join. */
  readonly orgId?: string;
}

/**
 * Checks a new password: its length, the 49,000 most common passwords, and the names of its user. Case, white space and punctuation do
 * not make a common password a rare one, nor do up to four digits after it.
 * @throws ServiceError validation_error with the param `password`
 */
export async function requireGoodPassword(db: Db, password: string, owner: PasswordOwner): Promise<void> {
  const length = characters(password);
  const isWrongLength = length < LENGTH.min || length > LENGTH.max;
  refuseProblem(isWrongLength ? `must be ${LENGTH.min} to ${LENGTH.max} characters` : undefined, 'password');
  const common = await loadCommon();
  refuseProblem(formsOf(password).some((form) => common.has(form)) ? COMMON : undefined, 'password');
  const [local = '', domain = ''] = owner.email.split(/@(?=[^@]*$)/);
  const organizations = await findOrganizationNames(db, owner.email, owner.orgId ?? null);
  const own = [owner.email, local, domain, domain.replace(/\.[^.]*$/, ''), owner.name, ...organizations, 'Sendwright'];
  const words = own.map(withoutDigitsAround).filter((word) => word.length >= MIN_OWN_LENGTH);
  refuseProblem(words.includes(withoutDigitsAround(password)) ? OWN : undefined, 'password');
}

function formsOf(password: string): string[] {
  const plain = lettersAndDigits(password);
  return [fold(password), plain, plain.replace(/\p{N}{1,4}$/u, '')];
}

const fold = (text: string): string => text.normalize('NFKC').toLowerCase().trim();
const lettersAndDigits = (text: string): string => fold(text).replace(/[^\p{L}\p{M}\p{N}]/gu, '');

function withoutDigitsAround(text: string): string {
  const characters = Array.from(lettersAndDigits(text));
  const isLetter = (character: string): boolean => !/\p{N}/u.test(character);
  const from = characters.findIndex(isLetter);
  return from === -1 ? '' : characters.slice(from, characters.findLastIndex(isLetter) + 1).join('');
}

let commonPasswords: Promise<ReadonlySet<string>> | undefined;

/** Loads the list when a password is first set: it takes 15 MB of memory. */
function loadCommon(): Promise<ReadonlySet<string>> {
  commonPasswords ??= import('@zxcvbn-ts/language-common').then(
    ({ dictionary }) => new Set(dictionary['passwords-common'].map(String)),
  );
  return commonPasswords;
}
