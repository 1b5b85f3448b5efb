import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../domain/errors.ts';
import { characters } from '../domain/text.ts';

/** OWASP's first choice for scrypt: 128 MB and some 0.3 s for each. */
const COST = { log2N: 17, r: 8, p: 1 } as const;
const SALT = 16;
const HASH = 32;
/** Passwords hashed at a time: a burst of strangers must not eat the memory. */
const AT_ONCE = 2;
/** How many may wait for their turn before others are told to come back. */
const WAITING = 50;

const LENGTH = { min: 8, max: 200 } as const;

let underWay = 0;
const waiting: (() => void)[] = [];

/** What is wrong with a password that somebody wishes to have, if anything. */
export function passwordProblem(password: string): string | undefined {
  const length = characters(password);
  if (length < LENGTH.min || length > LENGTH.max) return `must be ${LENGTH.min} to ${LENGTH.max} characters`;
  return undefined;
}

/** One that nobody guesses: 144 random bits in 24 letters and digits. */
export function generatePassword(): string {
  return randomBytes(18).toString('base64url');
}

/** What is kept of a password: its hash with salt and cost, as text. @throws ServiceError unavailable */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT);
  const { log2N, r, p } = COST;
  const hash = await derive(password, salt, COST);
  return ['scrypt', log2N, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/**
 * Whether a password is the one that was hashed. Without a hash it takes as long and is false.
 * @throws ServiceError unavailable when too many wait for their turn
 */
export async function isPassword(password: string, hashed: string | undefined): Promise<boolean> {
  const [, log2N, r, p, salt = '', hash = ''] = hashed?.split('$') ?? [];
  const cost = hashed === undefined ? COST : { log2N: Number(log2N), r: Number(r), p: Number(p) };
  const expected = hashed === undefined ? Buffer.alloc(HASH) : Buffer.from(hash, 'base64url');
  const derived = await derive(password, Buffer.from(salt, 'base64url'), cost);
  return timingSafeEqual(derived, expected) && hashed !== undefined;
}

async function derive(
  password: string,
  salt: Buffer,
  { log2N, r, p }: { log2N: number; r: number; p: number },
): Promise<Buffer> {
  await turn();
  try {
    return await new Promise((resolve, reject) => {
      const N = 2 ** log2N;
      // One text may be written in several ways (UAX #15), and keyboards differ in which they write.
      scrypt(password.normalize('NFKC'), salt, HASH, { N, r, p, maxmem: 256 * N * r }, (error, key) => {
        if (error) reject(error);
        else resolve(key);
      });
    });
  } finally {
    const next = waiting.shift();
    if (next) next();
    else underWay--;
  }
}

async function turn(): Promise<void> {
  if (underWay < AT_ONCE) {
    underWay++;
    return;
  }
  if (waiting.length >= WAITING) throw new ServiceError('unavailable', 'too many sign in at once; try again');
  // Who is done hands his place over.
  await new Promise<void>((resolve) => waiting.push(resolve));
}
