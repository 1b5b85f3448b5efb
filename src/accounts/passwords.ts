import { randomBytes, scrypt, type ScryptOptions, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { ServiceError } from '../domain/errors.ts';
import { type Holder, makeFairSlots } from '../lib/fair-slots.ts';

/** OWASP's first choice for scrypt: 128 MB and about 0.3 s per hash. */
const COST = { log2N: 17, r: 8, p: 1 } as const;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** The maximum number of passwords hashed concurrently: a burst of sign-ins must not exhaust the memory. */
const MAX_CONCURRENT_HASHES = 2;
/** The maximum number of waiting hashes, for known browsers and for all others each. */
const MAX_WAITING_HASHES = 50;

const scryptAsync = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

const slots = makeFairSlots({
  slots: MAX_CONCURRENT_HASHES,
  maxWaiting: MAX_WAITING_HASHES,
  refuse: () => new ServiceError('unavailable', 'too many passwords are being checked; try again'),
});

/** Generates a password of 144 random bits: 24 characters in base64url. */
export function generatePassword(): string {
  return randomBytes(18).toString('base64url');
}

/**
 * Hashes a password for storage.
 * @param holder waits for a slot in rotation with other holders, as in `isPassword`; '' is shared by all callers without one
 * @returns cost, salt and hash as text
 * @throws ServiceError unavailable if too many hashes are waiting
 */
export async function hashPassword(password: string, holder = ''): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const { log2N, r, p } = COST;
  const hash = await slots.run(holder, () => derive(password, salt, COST));
  return ['scrypt', log2N, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/**
 * Compares a password with a hash, in one of few slots. Holders, such as networks within larger ones, are served in rotation, after
 * those with priority. Without a hash it returns false after the same time.
 * @throws ServiceError unavailable if too many hashes are waiting
 */
export function isPassword(
  password: string,
  hashed: string | undefined,
  holder: Holder,
  options: { readonly isPriority?: boolean } = {},
): Promise<boolean> {
  return slots.run(holder, () => checkPassword(password, hashed), options);
}

async function checkPassword(password: string, hashed: string | undefined): Promise<boolean> {
  const [, log2N, r, p, salt = '', hash = ''] = hashed?.split('$') ?? [];
  const cost = hashed === undefined ? COST : { log2N: Number(log2N), r: Number(r), p: Number(p) };
  const expected = hashed === undefined ? Buffer.alloc(HASH_BYTES) : Buffer.from(hash, 'base64url');
  const derived = await derive(password, Buffer.from(salt, 'base64url'), cost);
  return timingSafeEqual(derived, expected) && hashed !== undefined;
}

function derive(
  password: string,
  salt: Buffer,
  { log2N, r, p }: { log2N: number; r: number; p: number },
): Promise<Buffer> {
  const N = 2 ** log2N;
  // Keyboards produce different encodings of the same text (UAX #15), so normalize it.
  return scryptAsync(password.normalize('NFKC'), salt, HASH_BYTES, { N, r, p, maxmem: 256 * N * r });
}
