/** The SECRET_KEY of tests. */
export const SECRET_KEY = 'a secret key for tests, and long enough';
