import { makeKnownBrowsers } from '../../src/domain/known-browser.ts';
import { signIn } from '../../src/accounts/sign-in.ts';
import type { Pool } from '../../src/store/postgres/pool.ts';

const knownBrowsers = makeKnownBrowsers('a secret key of tests that sign in without a browser');

/** Signs in from an unknown browser. @returns the kind */
export async function trySignIn(pool: Pool, email: string, password: string): Promise<string> {
  const { kind } = await signIn(
    { pool, knownBrowsers, issueChallenge: () => '' },
    { email, password, address: '192.0.2.1', userAgent: undefined, browser: undefined },
  );
  return kind;
}
