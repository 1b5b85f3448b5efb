import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const FILE = /^test\/.*\.test\.ts$/;
/** Start the whole service, some of them several times. */
export const END_TO_END = /^test\/(?:e2e|browser)\//;
/** Units, the store, and requests by HTTP. */
const QUICK = new RegExp(
  '^test/(?:accounts|client|domain|http|intake|lib|projection|providers|relay|store|telemetry|webhooks)/|^test/[^/]*$',
);
/** Files in those folders that take more than three seconds of processor time, or wait for longer than ten. */
const SLOW: ReadonlySet<string> = new Set(
  [
    ...['client/client', 'client/package', 'docs', 'intake/rate-limits', 'accounts/sign-in-limits'],
    ...['layers', 'projection/feedback', 'providers/attachments', 'providers/http-trace', 'providers/postmark'],
    ...['providers/smtp', 'providers/twilio-find', 'relay/channels', 'relay/relay', 'relay/temporal'],
    ...['store/email-lists', 'store/email-paging', 'store/files/s3', 'store/key-cache'],
    ...['store/migrate', 'store/pool', 'store/roles'],
    ...[
      ...['attachments', 'attachments-path', 'attachments-read', 'auth', 'batch', 'batches', 'bodies'],
      ...['bodies-in-flight', 'callbacks', 'chat-callbacks', 'chat-numbers'],
      ...['chat-numbers-verified', 'chatapp', 'domains', 'domains-dkim', 'domains-postmark'],
      ...['fingerprint', 'fuzz', 'idempotency-crash', 'keys', 'large-json', 'lists', 'logs', 'network-limits'],
      ...['openapi', 'openapi-answers', 'organization-limits', 'outage', 'process', 'public-bodies', 'quota'],
      ...['rate-limits', 'revocation', 'send-limits', 'two-organizations', 'unsubscribe', 'webhooks'],
    ].map((name) => `http/${name}`),
  ].map((name) => `test/${name}.test.ts`),
);

/** The files of a test run. */
export type Selection = 'quick' | 'usual' | 'services';

/**
 * Test files as paths from the project's folder. Node 20 knows no patterns for them.
 * @throws Error when a file of the list of slow ones does not exist
 */
export async function testFiles(selection: Selection): Promise<string[]> {
  const paths = await readdir(fileURLToPath(new URL('..', import.meta.url)), { recursive: true });
  const files = paths.map((path) => `test/${path}`).filter((path) => FILE.test(path));
  const missing = [...SLOW].filter((path) => !files.includes(path));
  if (missing.length > 0) throw new Error(`test/support/selection.ts lists missing files: ${missing.join(', ')}`);
  return files.filter((path) => isSelected(path, selection)).sort();
}

function isSelected(path: string, selection: Selection): boolean {
  if (selection === 'quick') return QUICK.test(path) && !SLOW.has(path);
  return END_TO_END.test(path) === (selection === 'services');
}
