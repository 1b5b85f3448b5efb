import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const FILE = /^test\/.*\.test\.ts$/;
/** Start the whole service, some of them several times. */
export const END_TO_END = /^test\/(?:e2e|browser)\//;
/** What an edit is most likely to break: units, the store, and requests by HTTP. */
const QUICK = new RegExp(
  '^test/(?:client|domain|http|intake|projection|providers|relay|sender-domains|store|telemetry|webhooks)/|^test/[^/]*$',
);
/** Files in those folders that take longer than five seconds on an idle machine, mostly waiting. */
const SLOW = new Set(
  [
    'client/client',
    'client/openapi',
    ...['attachments-path', 'auth', 'batch', 'batches', 'bodies', 'bodies-in-flight', 'callbacks', 'callbacks-claims'],
    ...['chat-callbacks', 'chat-numbers', 'chatapp', 'domains-dkim', 'fingerprint', 'idempotency-crash', 'keys'],
    ...['large-json', 'lists', 'logs', 'network-limits', 'outage', 'process', 'public-bodies', 'quota', 'rate-limits'],
    ...['revocation', 'rules-answers', 'send-limits', 'two-organizations', 'unsubscribe', 'webhooks'],
    ...['intake/rate-limits', 'projection/feedback', 'providers/http-trace', 'providers/smtp', 'relay/relay'],
    ...['relay/temporal', 'store/email-hours', 'store/email-lists', 'store/files/s3', 'store/key-ring'],
    ...['store/migrate', 'store/pool', 'layers', 'docs'],
  ].flatMap((name) => [`test/${name}.test.ts`, `test/http/${name}.test.ts`]),
);

/** All test files, from the project's folder. Node 20 knows no patterns for them. @param isQuick only those of `--quick` */
export async function testFiles(isQuick: boolean): Promise<string[]> {
  const paths = await readdir(fileURLToPath(new URL('..', import.meta.url)), { recursive: true });
  return paths
    .map((path) => `test/${path}`)
    .filter((path) => FILE.test(path) && (!isQuick || (QUICK.test(path) && !SLOW.has(path))))
    .sort();
}
