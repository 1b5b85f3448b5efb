import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { project } from '../../src/projection/emails.ts';
import { bodyOf, inFuture, useService } from '../http/service.ts';
import { temporaryFolder } from '../support/folder.ts';
import { assertMisused, command, printed as printedWith, runProcess } from './command-line.ts';

const service = await useService();
const ours = await service.organization();

const settings = () => ({ SENDWRIGHT_URL: service.url, SENDWRIGHT_API_KEY: ours.key });
const from = () => `Shop <shop@${ours.domain}>`;

const printed = <T = Record<string, unknown>>(args: readonly string[], env: Record<string, string> = settings()) =>
  printedWith<T>(args, env);

async function failed(args: readonly string[], env: Record<string, string> = settings()): Promise<string> {
  const { code, out, err } = await command(args, env);
  assert.deepEqual([code, out], [1, ''], `${args.join(' ')}: ${out}`);
  assert.doesNotMatch(err, /\n {4}at /, 'a sentence, not a stack');
  return err.trimEnd();
}

describe('send', () => {
  it('sends an email to several recipients and prints the answer of the API', async () => {
    const to = ['--to', 'ada@example.net', '--to', 'Bob <bob@example.net>'];
    const words = ['--from', from(), '--subject', 'Hello', '--text', 'Hi there.', '--html', '<p>Hi there.</p>'];
    const sent = await printed<{ id: string }>(['send', ...to, ...words]);
    assert.deepEqual(Object.keys(sent), ['id', 'status', 'created_at', 'scheduled_at']);
    const { to: kept, subject, status, from: sender } = await ours.email(sent.id);
    assert.deepEqual(kept, ['ada@example.net', 'Bob <bob@example.net>']);
    assert.deepEqual([subject, status, sender], ['Hello', 'queued', from()]);
  });

  it('sends copies, tags and files along', async (t) => {
    const folder = await temporaryFolder(t);
    await writeFile(join(folder, 'a.txt'), 'One');
    await writeFile(join(folder, 'b.png'), 'Two');
    const start = ['send', '--to', 'ada@example.net', '--from', from(), '--subject', 'Files', '--text', 'See there.'];
    const copies = ['--cc', 'c1@example.net', '--cc', 'c2@example.net', '--bcc', 'b@example.net'];
    const tags = ['--tag', 'kind:files', '--tag', 'plan:pro'];
    const files = ['--file', join(folder, 'a.txt'), '--file', join(folder, 'b.png')];
    const { id } = await printed<{ id: string }>([...start, ...copies, ...tags, ...files]);
    const email = await ours.email(id);
    assert.deepEqual([email['cc'], email['bcc']], [['c1@example.net', 'c2@example.net'], ['b@example.net']]);
    assert.deepEqual(email['tags'], [
      { name: 'kind', value: 'files' },
      { name: 'plan', value: 'pro' },
    ]);
    const kept = email['attachments'] as { filename: string; content_type: string; size: number }[];
    assert.deepEqual(
      kept.map(({ filename, content_type, size }) => [filename, content_type, size]),
      [
        ['a.txt', 'text/plain', 3],
        ['b.png', 'image/png', 3],
      ],
    );
    const missing = await failed([...start, '--file', join(folder, 'c.txt')]);
    assert.ok(missing.startsWith(`--file ${join(folder, 'c.txt')} cannot be read: ENOENT`), missing);
  });

  it('sends later with --at', async () => {
    const at = inFuture({ days: 1 });
    const args = ['send', '--to', 'a@example.net', '--from', from(), '--subject', 'Later', '--text', 'Hi.', '--at', at];
    const { status, scheduled_at } = await printed(args);
    assert.deepEqual([status, scheduled_at], ['scheduled', at]);
  });

  it('prints the error message of the API', async () => {
    const args = ['send', '--to', 'x', '--subject', 'Hello', '--text', 'Hi.', '--from', from()];
    assert.equal(await failed(args), 'to: must be local@domain or Name <local@domain>');
  });

  const COMPLETE = ['send', '--to', 'a@example.net', '--from', 'a@b.example', '--subject', 'S', '--text', 'T'];
  for (const [args, mistake, of] of [
    [
      [...COMPLETE, '--tag', 'x'],
      "option '--tag <name:value>' argument 'x' is invalid. Allowed: a name and a value with a colon between them.",
      'send',
    ],
    [[...COMPLETE, 'x'], "too many arguments for 'send'. Expected 0 arguments but got 1.", 'send'],
    [[...COMPLETE, '--limit', '1'], "unknown option '--limit'", 'send'],
    [
      ['emails', 'list', '--limit', 'x'],
      "option '--limit <n>' argument 'x' is invalid. Allowed: a whole number.",
      'emails list',
    ],
    [['emails', 'show'], "missing required argument 'id'", 'emails show'],
    [
      ['emails', 'show', 'tags'],
      "command-argument value 'tags' is invalid for argument 'id'. Ids of emails begin with em_.",
      'emails show',
    ],
  ] as const) {
    it(`refuses ${args.join(' ')}`, () => assertMisused(args, mistake, of));
  }

  it('requires a sender, and refuses two bodies from standard input', async () => {
    const sender = ['send', '--to', 'a@example.net', '--subject', 'S', '--text', 'T'];
    await assertMisused(sender, "required option '--from <address>' not specified", 'send', settings());
    const bodies = [...COMPLETE, '--text', '-', '--html', '-'];
    const mistake = 'only one of --text and --html can be read from standard input';
    await assertMisused(bodies, mistake, 'send', settings());
  });

  it('reads the text or the HTML from standard input for -', async () => {
    for (const [part, content] of [
      ['text', 'Grüße\nfrom a pipe.\n'],
      ['html', '<p>Grüße</p>\n'],
    ] as const) {
      const args = ['send', '--to', 'a@example.net', '--from', from(), '--subject', 'Piped', `--${part}`, '-'];
      const { code, out, err } = await runProcess(args, settings(), { input: content });
      assert.deepEqual([code, err], [0, '']);
      const { id } = JSON.parse(out) as { id: string };
      const sent = (await ours.call('GET', `/v1/emails/${id}/content`)).body as Record<string, unknown>;
      assert.equal(sent[part], content);
    }
  });
});

describe('emails', () => {
  it('list prints a page of the list by filters, and the next one', async () => {
    const tags = [{ name: 'kind', value: 'receipt' }];
    const [first, second] = [await ours.sent({ tags }), await ours.sent({ tags })];
    await ours.sent();
    interface Page {
      readonly emails: { id: string }[];
      readonly has_more: boolean;
      readonly next_cursor: string;
    }
    const list = ['emails', 'list', '--status', 'queued', '--tag', 'kind:receipt', '--limit', '1'];
    const page = await printed<Page>(list);
    assert.deepEqual([page.emails.map(({ id }) => id), page.has_more], [[second], true]);
    const next = await printed<Page>([...list, '--cursor', page.next_cursor]);
    assert.deepEqual([next.emails.map(({ id }) => id), next.has_more], [[first], false]);
    const several = ['emails', 'list', '--tag', 'kind:receipt', '--tag', 'kind:other'];
    assert.deepEqual((await printed<Page>(several)).emails, []);
  });

  it('list finds emails by each filter of the API', async () => {
    const json = { emails: [ours.mail()] };
    const batch = bodyOf<{ id: string }>(await ours.call('POST', '/v1/emails/batch', { json }), 202).id;
    const bounced = await ours.sent({ to: 'ada@filters.example', subject: 'Your first receipt' });
    const sent = await ours.sent({ from: `receipts@${ours.domain}`, subject: 'A receipt' });
    await project(service.pool, 'sent', [{ id: sent }]);
    await project(service.pool, 'bounced', [{ id: bounced, error: 'no', bounce_reason: 'mailbox_not_found' }]);
    const sentAt = String((await ours.email(sent))['created_at']);
    const word = ['--subject', 'receipt'];
    for (const [args, expected] of [
      [['--to', '@filters.example'], [bounced]],
      [['--from', `receipts@${ours.domain}`], [sent]],
      [['--subject', 'Receipt first'], [bounced]],
      [[...word, '--created-after', sentAt], [sent]],
      [[...word, '--created-before', sentAt], [bounced]],
      [['--bounce-reason', 'mailbox_not_found'], [bounced]],
      [
        [...word, '--status', 'sent', '--status', 'bounced'],
        [sent, bounced],
      ],
    ] as const) {
      const { emails } = await printed<{ emails: { id: string }[] }>(['emails', 'list', ...args]);
      const ids = emails.map(({ id }) => id);
      assert.deepEqual(ids, expected, args.join(' '));
    }
    const members = await printed<{ emails: { batch_id: string }[] }>(['emails', 'list', '--batch-id', batch]);
    assert.deepEqual(
      members.emails.map(({ batch_id }) => batch_id),
      [batch],
    );
  });

  for (const [option, value, param] of [
    ['--limit', '101', 'limit'],
    ['--to', 'ada', 'to'],
    ['--from', '@', 'from'],
    ['--subject', '...', 'subject'],
    ['--created-after', 'yesterday', 'created_after'],
    ['--created-before', '2026-03-01', 'created_before'],
    ['--bounce-reason', 'full', 'bounce_reason'],
    ['--status', 'lost', 'status'],
  ] as const) {
    it(`list prints the error message of the API about ${option} ${value}`, async () => {
      const query = `${param}=${encodeURIComponent(value)}`;
      const { error } = bodyOf<{ error: { message: string } }>(await ours.call('GET', `/v1/emails?${query}`), 422);
      assert.ok(error.message.startsWith(`${param}: `), error.message);
      assert.equal(await failed(['emails', 'list', option, value]), error.message);
    });
  }

  it('show prints one', async () => {
    const id = await ours.sent();
    assert.deepEqual(await printed(['emails', 'show', id]), await ours.email(id));
    assert.equal(await failed(['emails', 'show', `em_${'0'.repeat(26)}`]), 'there is no email with this id');
  });

  it('cancel cancels a scheduled email, and reports one that is not scheduled', async () => {
    const id = await ours.sent({ scheduled_at: inFuture({ days: 1 }) });
    const canceled = await printed(['emails', 'cancel', id]);
    assert.deepEqual([canceled['id'], canceled['status']], [id, 'canceled']);
    assert.equal((await ours.email(id))['status'], 'canceled');
    assert.match(await failed(['emails', 'cancel', id]), /canceled/);
  });
});

describe('the API and the key', () => {
  const list = ['emails', 'list', '--limit', '1'];

  it('are those of the dev.json in SENDWRIGHT_HOME, with an address to send from', async (t) => {
    const home = await temporaryFolder(t);
    const dev = { base_url: service.url, api_key: ours.key, from: from() };
    await writeFile(join(home, 'dev.json'), JSON.stringify(dev));
    const args = ['send', '--to', 'a@example.net', '--subject', 'Hello', '--text', 'Hi.'];
    const { id } = await printed<{ id: string }>(args, { SENDWRIGHT_HOME: home });
    assert.equal((await ours.email(id))['from'], from());
  });

  it('go together: a key from dev.json is not sent to another service', async (t) => {
    const home = await temporaryFolder(t);
    const dev = { base_url: 'http://127.0.0.1:9', api_key: ours.key };
    await writeFile(join(home, 'dev.json'), JSON.stringify(dev));
    const error = await failed(list, { SENDWRIGHT_HOME: home, SENDWRIGHT_URL: service.url });
    assert.ok(error.startsWith('SENDWRIGHT_API_KEY is missing: '), error);
    const missing = await failed(list, { SENDWRIGHT_HOME: join(home, 'nowhere') });
    assert.ok(missing.startsWith('SENDWRIGHT_URL is missing: '), missing);
  });

  it('are reported in one line if the API does not answer', async () => {
    const error = await failed(list, { ...settings(), SENDWRIGHT_URL: 'http://127.0.0.1:9' });
    assert.equal(error, 'the API at http://127.0.0.1:9 does not answer: is it running, and is SENDWRIGHT_URL right?');
  });

  it('names a refused key without its secret, and where it was read from', async (t) => {
    const home = await temporaryFolder(t);
    const [id, secret] = ['0'.repeat(26), 'f'.repeat(64)];
    const wrong = `sw_live_${id}_${secret}`;
    await writeFile(join(home, 'dev.json'), JSON.stringify({ base_url: service.url, api_key: wrong }));
    await writeFile(join(home, 'key'), `${wrong}\n`);
    for (const [env, origin] of [
      [{ SENDWRIGHT_HOME: home }, join(home, 'dev.json')],
      [{ ...settings(), SENDWRIGHT_API_KEY: wrong }, 'SENDWRIGHT_API_KEY in the environment'],
      [
        { SENDWRIGHT_URL: service.url, SENDWRIGHT_API_KEY_FILE: join(home, 'key') },
        `${join(home, 'key')} (SENDWRIGHT_API_KEY_FILE)`,
      ],
    ] as const) {
      const error = await failed(list, env);
      assert.match(error, /^[^\n]*API key[^\n]*\n[^\n]+$/);
      assert.ok(error.endsWith(`\nThe request used key_${id} from ${origin}.`), error);
      assert.ok(!error.includes(secret), error);
    }
  });

  it('reports a server that is not Sendwright and does not follow its redirect with the key', async (t) => {
    const requests: string[] = [];
    const server = createServer((request, response) => {
      requests.push(request.url ?? '');
      response.writeHead(302, { location: '/elsewhere' }).end('<html>');
    });
    t.after(() => server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const error = await failed(list, { ...settings(), SENDWRIGHT_URL: url });
    assert.equal(error, `${url} answers 302 and no JSON of Sendwright's: is SENDWRIGHT_URL right?`);
    assert.deepEqual(requests, ['/v1/emails?limit=1']);
  });
});
