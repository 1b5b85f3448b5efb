import { type Db, execute, executeOne, queryRow } from '../postgres/pool.ts';

interface SecondFactor {
  /** The sealed secret of its codes. */
  sealed: Buffer;
  /** True if the set-up was completed. */
  is_confirmed: boolean;
  /** How many recovery codes are left. */
  recovery_codes: number;
}

export function findSecondFactor(db: Db, userId: string): Promise<SecondFactor | undefined> {
  return queryRow(
    db,
    `SELECT sealed, confirmed_at IS NOT NULL AS is_confirmed,
            (SELECT count(*)::int FROM recovery_codes AS code WHERE code.user_id = factor.user_id) AS recovery_codes
     FROM second_factors AS factor WHERE user_id = $1`,
    [userId],
  );
}

/** Starts a set-up with a new secret; a confirmed factor stays. */
export async function insertSecondFactor(db: Db, userId: string, sealed: Buffer): Promise<void> {
  await execute(
    db,
    `INSERT INTO second_factors AS factor (user_id, sealed) VALUES ($1, $2)
     ON CONFLICT (user_id) DO UPDATE SET sealed = excluded.sealed, last_step = 0, created_at = now()
     WHERE factor.confirmed_at IS NULL`,
    [userId, sealed],
  );
}

/**
 * Uses up a time step, so that its code and earlier ones are not accepted again.
 * @param factor the sealed secret whose code was checked
 * @param confirms completes the set-up
 * @returns false if this or a later step was used, if the secret was replaced meanwhile, or if `confirms` is true for a completed
 * set-up or false for an open one
 */
export function redeemStep(
  db: Db,
  userId: string,
  { sealed }: Pick<SecondFactor, 'sealed'>,
  step: number,
  confirms: boolean,
): Promise<boolean> {
  return executeOne(
    db,
    `UPDATE second_factors SET last_step = $2, confirmed_at = coalesce(confirmed_at, now())
     WHERE user_id = $1 AND last_step < $2 AND (confirmed_at IS NULL) = $3 AND sealed = $4`,
    [userId, step, confirms, sealed],
  );
}

/** Replaces the recovery codes of a user. @param digests SHA-256 of each */
export async function replaceRecoveryCodes(db: Db, userId: string, digests: readonly Buffer[]): Promise<void> {
  // Of two concurrent replacements, the second deletes the codes of the first.
  await execute(db, `SELECT FROM second_factors WHERE user_id = $1 FOR UPDATE`, [userId]);
  await execute(db, `DELETE FROM recovery_codes WHERE user_id = $1`, [userId]);
  await execute(db, `INSERT INTO recovery_codes (user_id, sha256) SELECT $1, unnest($2::bytea[])`, [userId, digests]);
}

/** Uses up a recovery code. @returns false if the user has no such code */
export function redeemRecoveryCode(db: Db, userId: string, sha256: Buffer): Promise<boolean> {
  return executeOne(db, `DELETE FROM recovery_codes WHERE user_id = $1 AND sha256 = $2`, [userId, sha256]);
}

/** Removes the second factor of a user and its recovery codes. @returns false if there was none */
export async function deleteSecondFactor(db: Db, userId: string): Promise<boolean> {
  await execute(db, `DELETE FROM recovery_codes WHERE user_id = $1`, [userId]);
  return (await execute(db, `DELETE FROM second_factors WHERE user_id = $1`, [userId])) > 0;
}
