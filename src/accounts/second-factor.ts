import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { ServiceError } from '../domain/errors.ts';
import { digest } from '../lib/digest.ts';
import { makeSeal, type Seal } from '../lib/seal.ts';
import { deriveKeys, type SecretKeys } from '../lib/secret-key.ts';
import { formatWait } from '../lib/text.ts';
import {
  deleteSecondFactor,
  findSecondFactor,
  insertSecondFactor,
  replaceRecoveryCodes,
  redeemRecoveryCode,
  redeemStep,
} from '../store/accounts/second-factors.ts';
import { deleteOtherSessions } from '../store/accounts/sessions.ts';
import type { User } from '../store/accounts/users.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { auditByUser } from './audit.ts';
import { countCheck, resetChecks } from './sign-in-limits.ts';
import { requirePassword } from './users.ts';

/** RFC 4226 §4 recommends 160 bits. */
const SECRET_BYTES = 20;
/** The accepted clock difference in steps of 30 s (RFC 6238 §5.2). */
const WINDOW_STEPS = 1;
const RECOVERY_CODES = 10;
const RECOVERY_CODE_BYTES = 10;
/** That many wrong codes in a day are no typing errors: somebody else may know the password. */
const ALARMING_CODES = 5;

export interface SecondFactorDeps {
  readonly pool: Pool;
  /** Seals the TOTP secrets. The associated data is the user's id. */
  readonly seal: Seal;
  /** Tells a user that somebody who knows the password entered wrong codes. */
  readonly reportWrongCodes: (user: User) => Promise<void>;
}

export function secondFactorSeal(secretKeys: SecretKeys): Seal {
  return makeSeal(deriveKeys(secretKeys, 'second factors'));
}

/** Starts the set-up with a new secret. A completed set-up is unchanged. */
export async function startSetUp(
  { pool, seal }: Pick<SecondFactorDeps, 'pool' | 'seal'>,
  userId: string,
): Promise<void> {
  await insertSecondFactor(pool, userId, seal.close(randomBytes(SECRET_BYTES), userId));
}

/** The secret for an authenticator app, as a URI and in base32. */
export interface SetUp {
  readonly uri: string;
  readonly secret: string;
}

/** Returns the state of a user's second factor; `setUp` is set until the set-up is completed. */
export async function readSecondFactor(
  { pool, seal }: Pick<SecondFactorDeps, 'pool' | 'seal'>,
  { id, email }: User,
): Promise<{ isOn: boolean; recoveryCodes: number; setUp: SetUp | null }> {
  const factor = await findSecondFactor(pool, id);
  if (!factor) return { isOn: false, recoveryCodes: 0, setUp: null };
  const { is_confirmed: isOn, recovery_codes: recoveryCodes, sealed } = factor;
  if (isOn) return { isOn, recoveryCodes, setUp: null };
  const totp = makeTotp(seal.open(sealed, id), email);
  return { isOn, recoveryCodes, setUp: { uri: totp.toString(), secret: totp.secret.base32 } };
}

/**
 * Completes the set-up with a code of the authenticator app, and ends the other sessions: they began without a code.
 * @param current the user's password; null in a session by OpenID Connect, whose user may not have one
 * @param keep the token of the current session
 * @returns recovery codes, of which only digests are stored
 * @throws ServiceError validation_error, rate_limit_exceeded
 */
export async function completeSetUp(
  deps: SecondFactorDeps,
  user: User,
  { code, current, keep }: { readonly code: string; readonly current: string | null; readonly keep: string },
): Promise<string[]> {
  if (current !== null) await requirePassword(deps.pool, user, current);
  await requireCode(deps, user, (mayUseApp) => mayUseApp && redeemTotp(deps.pool, deps.seal, user, code, true));
  return issueRecoveryCodes(deps.pool, user, 'account.second-factor-on', (client) =>
    deleteOtherSessions(client, user.id, digest(keep)),
  );
}

/** Replaces the recovery codes. @throws ServiceError validation_error, rate_limit_exceeded */
export async function renewRecoveryCodes(deps: SecondFactorDeps, user: User, code: string): Promise<string[]> {
  await checkCode(deps, user, code);
  return issueRecoveryCodes(deps.pool, user, 'account.recovery-codes');
}

/** Removes the second factor. @throws ServiceError validation_error, rate_limit_exceeded */
export async function turnOff(deps: SecondFactorDeps, user: User, code: string): Promise<void> {
  await checkCode(deps, user, code);
  await transaction(deps.pool, async (client) => {
    await deleteSecondFactor(client, user.id);
    await auditByUser(client, user, 'account.second-factor-off');
  });
}

/**
 * Verifies and consumes a code of the authenticator app or a recovery code.
 * @throws ServiceError validation_error for a wrong or used code, rate_limit_exceeded after too many of them
 */
export async function checkCode(deps: SecondFactorDeps, user: User, code: string): Promise<void> {
  await requireCode(deps, user, async (mayUseApp) => {
    if (mayUseApp && (await redeemTotp(deps.pool, deps.seal, user, code, false))) return true;
    const isRedeemed = await redeemRecoveryCode(deps.pool, user.id, digestOf(code));
    if (isRedeemed) await auditByUser(deps.pool, user, 'account.recovery-code');
    return isRedeemed;
  });
}

/**
 * Counts an attempt before the code is checked, so that concurrent attempts cannot exceed the limit. Above the limit of a day, codes of
 * the app could be guessed in time, but not recovery codes.
 * @param take redeems the code; its parameter is false if codes of the app are no longer accepted
 */
async function requireCode(
  { pool, reportWrongCodes }: SecondFactorDeps,
  user: User,
  take: (mayUseApp: boolean) => boolean | Promise<boolean>,
): Promise<void> {
  const { waitSeconds, waitSecondsOfDay, attemptsOfDay } = await countCheck(pool, 'code', user);
  const refuse = (seconds: number, remedy: string): never => {
    const message = `the code was wrong too often; ${remedy}try again in ${formatWait(seconds)}`;
    throw new ServiceError('rate_limit_exceeded', message, undefined, seconds);
  };
  if (waitSeconds !== undefined) refuse(waitSeconds, '');
  if (await take(waitSecondsOfDay === undefined)) return resetChecks(pool, 'code', user);
  if (attemptsOfDay === ALARMING_CODES) await reportWrongCodes(user);
  if (waitSecondsOfDay !== undefined) refuse(waitSecondsOfDay, 'use a recovery code, reset your password, or ');
  throw new ServiceError('validation_error', 'is wrong or was used already', 'code');
}

async function redeemTotp(db: Db, seal: Seal, { id, email }: User, code: string, confirms: boolean): Promise<boolean> {
  const factor = await findSecondFactor(db, id);
  const token = code.replace(/\s/g, '');
  if (!factor || !/^\d{6}$/.test(token)) return false;
  const totp = makeTotp(seal.open(factor.sealed, id), email);
  const timestamp = Date.now();
  const delta = totp.validate({ token, window: WINDOW_STEPS, timestamp });
  return delta !== null && redeemStep(db, id, factor, totp.counter({ timestamp }) + delta, confirms);
}

function makeTotp(secret: Buffer, email: string): TOTP {
  // Copy into an ArrayBuffer of its own, because small Buffers share one.
  return new TOTP({
    issuer: 'Sendwright',
    label: email,
    secret: new Secret({ buffer: Uint8Array.from(secret).buffer }),
  });
}

async function issueRecoveryCodes(
  pool: Pool,
  user: User,
  action: string,
  also: (client: Db) => Promise<unknown> = async () => undefined,
): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, () => {
    const { base32 } = new Secret({ buffer: Uint8Array.from(randomBytes(RECOVERY_CODE_BYTES)).buffer });
    return (base32.match(/.{4}/g) as string[]).join('-');
  });
  await transaction(pool, async (client) => {
    await replaceRecoveryCodes(client, user.id, codes.map(digestOf));
    await also(client);
    await auditByUser(client, user, action);
  });
  return codes;
}

/** Users enter codes in lower case and with other separators. */
function digestOf(recoveryCode: string): Buffer {
  return digest(recoveryCode.toUpperCase().replace(/[^A-Z2-7]/g, ''));
}
