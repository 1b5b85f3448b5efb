/**
 * Variables of test/run.ts: `TEST_DATABASE_URL` (a Postgres server, as a role that may create databases),
 * `TEST_TEMPORAL_ADDRESS`, `TEST_RUN` (a word that names the run), `TEST_HOMES` (a folder for homes of `npm start`),
 * `TEST_WORKFLOW_BUNDLE` (a file for the workflow code), `TEST_COMPILED` (a folder with all TypeScript as JavaScript),
 * `TEMPORAL_TEST_SERVER_PATH` and `TEMPORAL_CLI_PATH`.
 */
export function provided(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is missing: run this test by npm test -- <file>, which starts the servers that it needs`);
}
