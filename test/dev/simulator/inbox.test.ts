import assert from 'node:assert/strict';
import { appendFileSync, readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/folder.ts';
import { mail, start } from './start.ts';

const files = (folder: string) =>
  readdirSync(folder)
    .sort()
    .map((name) => join(folder, name));

test('lists messages latest first, up to the limit', async (t) => {
  const { inboxUrl, postmark, inbox } = await start(t);
  await postmark.sendEmailBatch(Array.from({ length: 60 }, (_, i) => mail({ To: 'one@example.net', Subject: `${i}` })));
  assert.equal((await inbox()).length, 50);
  assert.deepEqual(
    (await inbox('one@example.net')).map(({ subject }) => subject),
    Array.from({ length: 60 }, (_, i) => `${59 - i}`),
  );
  const limited = await fetch(`${inboxUrl}/messages?limit=2`);
  assert.match(limited.headers.get('content-type') ?? '', /^application\/json/);
  assert.deepEqual(
    ((await limited.json()) as { subject: string }[]).map(({ subject }) => subject),
    ['59', '58'],
  );
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'to=a&to=b']) {
    const answer = await fetch(`${inboxUrl}/messages?${query}`);
    assert.equal(answer.status, 422, query);
    const { error } = (await answer.json()) as { error: string };
    assert.ok(error.startsWith(`${query.slice(0, query.indexOf('='))}: `), error);
  }
});

test('finds a recipient with a plus that is not escaped in the query', async (t) => {
  const { inboxUrl, postmark } = await start(t);
  await postmark.sendEmail(mail({ To: 'bounced+mailbox_full@example.com' }));
  const found = await fetch(`${inboxUrl}/messages?to=bounced+mailbox_full@example.com`);
  assert.equal(((await found.json()) as unknown[]).length, 1);
  const page = await (await fetch(`${inboxUrl}?to=+bounced+mailbox_full@example.com`)).text();
  assert.ok(page.includes('1 to bounced+mailbox_full@example.com'), page);
});

test('lets no other user of the machine read its messages', async (t) => {
  const folder = join(await temporaryFolder(t), 'inbox');
  await start(t, { folder });
  assert.equal(statSync(folder).mode & 0o777, 0o700);
});

test('keeps and finds messages after a restart', async (t) => {
  const folder = await temporaryFolder(t);
  const first = await start(t, { folder });
  const fields = { To: 'Jörg <j@example.net>', Subject: 'tab\tand\nnewline', Metadata: { call: 'c' } };
  const { MessageID } = await first.postmark.sendEmail(mail(fields));
  await first.mailer.sendMail({ from: 'a@example.com', to: 'j@example.net', subject: 'By SMTP', text: 'x' });
  const before = await first.inbox();
  await first.close();

  const second = await start(t, { folder });
  assert.deepEqual(await second.inbox(), before);
  assert.equal((await second.inbox('J@example.net')).length, 2);
  const { subject } = (await second.inbox('j@example.net'))[1] ?? {};
  assert.equal(subject, 'tab\tand\nnewline');
  assert.equal((await second.postmark.getOutboundMessages({ recipient: 'j@example.net' })).Messages.length, 1);
  assert.equal((await second.postmark.getOutboundMessageDetails(MessageID)).Metadata['call'], 'c');
  await second.postmark.sendEmail(mail());
  assert.equal((await second.inbox()).length, 3);
});

test('removes a partially written line and skips a damaged one', async (t) => {
  const folder = await temporaryFolder(t);
  const first = await start(t, { folder });
  await first.postmark.sendEmailBatch([mail({ Subject: 'first' }), mail({ Subject: 'second' })]);
  await first.close();
  const [file] = files(folder) as [string];
  const whole = statSync(file).size;
  appendFileSync(file, 'not a message\n{"id":"x"}\t{}\n{"id":"torn","provider":"postm');

  const second = await start(t, { folder });
  const subjects = async () => (await second.inbox()).map(({ subject }) => subject);
  assert.deepEqual(await subjects(), ['second', 'first']);
  await second.postmark.sendEmail(mail({ Subject: 'third' }));
  assert.deepEqual(await subjects(), ['third', 'second', 'first']);
  await second.close();

  const third = await start(t, { folder });
  assert.deepEqual(
    (await third.inbox()).map(({ subject }) => subject),
    ['third', 'second', 'first'],
  );
  await third.close();

  truncateSync(file, whole - 1);
  const fourth = await start(t, { folder });
  assert.deepEqual(
    (await fourth.inbox()).map(({ subject }) => subject),
    ['first'],
  );
});

test('drops the oldest messages from memory and from disk', async (t) => {
  for (const folder of [null, await temporaryFolder(t)]) {
    const { postmark, inbox, close } = await start(t, { folder, keep: { messages: 40 } });
    const mails = Array.from({ length: 100 }, (_, i) => mail({ Subject: `${i}` }));
    for (const one of mails) await postmark.sendEmail(one);
    const kept = (await inbox()).map(({ subject }) => Number(subject));
    assert.deepEqual(
      kept,
      kept.map((_, i) => 99 - i),
    );
    assert.ok(kept.length > 36 && kept.length <= 40, `${kept.length} are kept`);
    assert.deepEqual(await inbox(mails[0]?.To), []);
    if (folder === null) continue;
    assert.ok(files(folder).length <= 21);
    await close();
    const again = await start(t, { folder, keep: { messages: 10 } });
    assert.ok((await again.inbox()).length <= 10);
  }
});

test('shows older messages on further pages, and what addresses do', async (t) => {
  const { inboxUrl, postmark } = await start(t);
  await postmark.sendEmailBatch(
    Array.from({ length: 51 }, (_, i) => mail({ To: 'b@example.net', Subject: `No. ${i + 1}` })),
  );
  const shown = async (query: string) => {
    const html = await (await fetch(inboxUrl + query)).text();
    return { html, subjects: [...html.matchAll(/class="subject">([^<]*)</g)].map(([, subject]) => subject) };
  };
  const first = await shown('?to=b@example.net');
  assert.deepEqual([first.subjects.length, first.subjects[0]], [50, 'No. 51']);
  assert.ok(first.html.includes('href="/inbox?to=b%40example.net&amp;page=2"'), 'a link to older ones');
  const second = await shown('?to=b@example.net&page=2');
  assert.deepEqual(second.subjects, ['No. 1']);
  assert.ok(!second.html.includes('>Older<') && second.html.includes('>Newer<'));
  assert.ok(first.html.includes('fail-once@'), 'the help');
});

test('shows messages without running their scripts', async (t) => {
  const { inboxUrl, postmark, mailer } = await start(t);
  const evil = '<script>alert(1)</script>"\'&';
  const { MessageID } = await postmark.sendEmail(
    mail({
      To: '"<script>to</script>" <to@example.net>',
      Subject: evil,
      TextBody: evil,
      HtmlBody: `<p style="color:red">"Hi" & bye</p>${evil}`,
      Headers: [{ Name: 'X-<b>', Value: evil }],
      Attachments: [{ Name: `${evil}.txt`, Content: 'eA==', ContentType: evil }],
    }),
  );
  await mailer.sendMail({ from: 'a@example.com', to: 'smtp@example.net', subject: 'By SMTP', text: 'x' });

  for (const path of [
    '',
    '?to=to%40example.net',
    `?to=${encodeURIComponent(evil)}`,
    `/${MessageID}`,
    `/${encodeURIComponent(evil)}`,
  ]) {
    const answer = await fetch(inboxUrl + path);
    const page = await answer.text();
    const nonce = /script-src 'nonce-([^']+)'/.exec(answer.headers.get('content-security-policy') ?? '')?.[1];
    assert.ok(nonce);
    assert.match(answer.headers.get('content-security-policy') ?? '', /^default-src 'none';/);
    assert.equal(page.replace(`<script nonce="${nonce}">`, '').includes('<script'), false, path);
    assert.doesNotMatch(page, /(?:src|href)="(?!\/inbox|data:,)/, path);
  }
  const list = await (await fetch(inboxUrl)).text();
  assert.ok(list.indexOf('By SMTP') < list.indexOf('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;'));
  const found = await (await fetch(`${inboxUrl}?to=SMTP%40example.net`)).text();
  assert.ok(found.includes('By SMTP') && !found.includes('alert(1)'));

  const message = await (await fetch(`${inboxUrl}/${MessageID}`)).text();
  assert.match(message, /<iframe[^>]*\ssandbox="allow-popups allow-popups-to-escape-sandbox"/);
  assert.match(message, /srcdoc="[^"]*&lt;p style=&quot;color:red&quot;&gt;&quot;Hi&quot; &amp; bye/);
  assert.equal((await fetch(`${inboxUrl}/nothing`)).status, 404);
});
