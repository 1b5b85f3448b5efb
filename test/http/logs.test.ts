import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { useDatabase } from '../support/database.ts';
import { post, startApi } from './api-process.ts';
import { inFuture } from './service.ts';
import { connectSocket, head } from './socket.ts';

/** Words that no log may contain, one for each place of a request. */
const PLACES = [
  ...['local', 'name', 'recipient', 'copy', 'blind', 'reply', 'subject', 'html', 'text', 'header'],
  ...['field', 'path', 'query', 'agent', 'password'],
] as const;
const CANARY = Object.fromEntries(PLACES.map((place) => [place, `canary${place}`])) as Record<
  (typeof PLACES)[number],
  string
>;

const database = await useDatabase();
const organization = await createOrganization(database.pool, 'logs');
const { api_key: key } = organization;
const domain = 'canarydomain.example';
await registerDomainForOperator(database.pool, organization.id, domain, true);
// Fails with an error that quotes the whole row.
await database.pool.query(`ALTER TABLE emails ADD CONSTRAINT unlucky CHECK (subject NOT LIKE '%unlucky%')`);
await database.pool.query(`ALTER TABLE email_bodies ADD CONSTRAINT unlucky CHECK (body_bytes < 100000)`);
const api = await startApi({
  DATABASE_URL: database.url,
  LOG_LEVEL: 'trace',
  POSTMARK_WEBHOOK_USER: 'postmark',
  POSTMARK_WEBHOOK_PASSWORD: CANARY.password,
});
after(() => api.child.kill('SIGKILL'));

function mail(fields: object = {}): object {
  return {
    from: `${CANARY.name} <${CANARY.local}@${domain}>`,
    to: `${CANARY.recipient}@example.net`,
    cc: [`${CANARY.copy}@example.net`],
    bcc: [`${CANARY.blind}@example.net`],
    reply_to: `${CANARY.reply}@example.net`,
    subject: CANARY.subject,
    html: CANARY.html,
    text: CANARY.text,
    headers: { 'X-A': CANARY.header },
    ...fields,
  };
}

/** Sends an email with the user agent that must not be logged. @returns its id */
async function sendEmail(fields: object): Promise<string> {
  const { body } = await request(`${api.url}/v1/emails`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'user-agent': CANARY.agent },
    body: JSON.stringify(mail(fields)),
  });
  return ((await body.json()) as { id: string }).id;
}

it('logs contain no address, subject, body, key or password, at any level and with any error', async () => {
  const emails = `${api.url}/v1/emails`;
  const ours = { authorization: `Bearer ${key}` };
  const basic = { authorization: `Basic ${Buffer.from(`postmark:${CANARY.password}`).toString('base64')}` };
  const scheduled = await sendEmail({ scheduled_at: inFuture({ hours: 1 }) });
  const answers = [
    await post(emails, mail(), ours),
    await post(emails, mail({ subject: '' }), ours),
    await post(emails, mail({ to: CANARY.recipient }), ours),
    await post(emails, mail({ [CANARY.field]: CANARY.field }), ours),
    await post(emails, mail({ headers: { [CANARY.field]: 5 } }), ours),
    await post(emails, mail({ from: `${CANARY.local}@other.example` }), ours),
    await post(emails, mail({ html: `${CANARY.html}\0` }), ours),
    await post(emails, JSON.stringify(mail()).slice(0, -1), ours),
    await post(emails, JSON.stringify(mail()), { ...ours, 'content-type': `text/${CANARY.field}` }),
    await post(emails, mail(), { authorization: `Bearer ${key}0` }),
    await post(emails, mail(), { authorization: key }),
    await post(emails, mail(), {}),
    await post(`${emails}?${CANARY.query}=${CANARY.query}`, mail(), ours),
    await post(`${emails}/${CANARY.path}`, mail(), ours),
    await post(`${emails}/${CANARY.path}/cancel`, {}, ours),
    await post(`${emails}/%00${CANARY.path}/cancel`, {}, ours),
    await post(`${api.url}/${CANARY.path}`, mail(), ours),
    await post(`${emails}/${scheduled}/cancel`, { [CANARY.field]: 1 }, ours),
    await post(`${emails}/${scheduled}/cancel`, {}, ours),
    await post(emails, mail({ subject: `${CANARY.subject} unlucky` }), ours),
    await post(emails, mail({ html: `${CANARY.html} unlucky`.repeat(10_000) }), ours),
    await post(`${api.url}/callbacks/postmark`, { RecordType: 'Bounce', Email: CANARY.recipient }, basic),
    await post(`${api.url}/callbacks/postmark`, { RecordType: 'Delivery', Metadata: { email: CANARY.field } }, basic),
    await post(`${api.url}/callbacks/postmark`, {}, { authorization: `Basic ${CANARY.password}` }),
  ];
  assert.deepEqual(answers, [
    ...[202, 422, 422, 422, 422, 403, 422, 400, 415, 401, 401, 401, 422, 405, 404, 404, 404, 422, 200, 500, 500],
    ...[200, 200, 401],
  ]);

  // A change whose audit entry cannot be stored.
  await post(`${api.url}/v1/suppressions`, { email: `${CANARY.recipient}@example.net` }, ours);
  await database.pool.query('ALTER TABLE audit_log RENAME TO hidden_log');
  const url = `${api.url}/v1/suppressions/${CANARY.recipient}@example.net`;
  const removed = await request(url, { method: 'DELETE', headers: ours });
  await removed.body.dump();
  await database.pool.query('ALTER TABLE hidden_log RENAME TO audit_log');
  assert.equal(removed.statusCode, 204);

  // Requests that are not HTTP or break off.
  const { port } = new URL(api.url);
  const json = JSON.stringify(mail());
  for (const bytes of [
    `${head('/v1/emails', key, `X ${CANARY.header}`)}${json}`,
    `${head('/v1/emails', key, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}${json}`,
    head('/v1/emails', key, `X: ${CANARY.header.repeat(2_000)}`),
    `${head('/v1/emails', key, 'Content-Type: application/json', 'Content-Length: 10000')}${json}`,
    `SEND ${CANARY.path} ${key}\r\n\r\n`,
  ]) {
    const socket = await connectSocket(Number(port));
    socket.write(bytes);
    await sleep(50);
    socket.destroy();
  }

  // The database fails.
  await database.pool.query('ALTER TABLE emails RENAME TO hidden');
  assert.equal(await post(emails, mail(), ours), 500);
  await database.pool.query('ALTER TABLE hidden RENAME TO emails');
  await database.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  await Promise.all(Array.from({ length: 10 }, () => post(emails, mail(), ours)));
  await sleep(200);
  assert.deepEqual(await api.end(), [0, null]);

  const printed = api.printed();
  const lines = printed.split('\n').filter((line) => line.startsWith('{'));
  assert.ok(lines.filter((line) => line.includes('"msg":"request"')).length >= answers.length, printed);
  assert.match(printed, /"broken request"/);
  assert.match(printed, /violates check constraint/);
  const secret = key.split('_').at(-1) as string;
  for (const word of [...Object.values(CANARY), secret, 'canary']) {
    for (const form of [word, Buffer.from(word).toString('hex'), [...Buffer.from(word)].join(',')]) {
      const line = printed.split('\n').find((each) => each.toLowerCase().includes(form.toLowerCase()));
      assert.equal(line, undefined, `${word} is in the log`);
    }
  }
  for (const text of [`postmark:${CANARY.password}`, CANARY.password, secret]) {
    assert.ok(!printed.includes(Buffer.from(text).toString('base64').replace(/=+$/, '').slice(2, -2)));
  }
});
