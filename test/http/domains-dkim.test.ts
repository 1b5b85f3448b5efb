import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { pino } from 'pino';
import { deliver } from '../../src/delivery/email/deliver.ts';
import { makeLargeEmails } from '../../src/delivery/email/large-emails.ts';
import { makeProviderPauses } from '../../src/delivery/pauses.ts';
import { makeAttemptRecorder } from '../../src/delivery/recorder.ts';
import { makeSendingDomains } from '../../src/delivery/email/sending-domains.ts';
import { makeDns } from '../../src/providers/dns.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { dkimSeal } from '../../src/sender-domains/deps.ts';
import { smtpScript } from '../providers/smtp-script.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { inFuture, type Organization, SECRET_KEY, type Service, startService } from './service.ts';

const log = pino({ level: 'silent' });

interface Domain {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly records: { record: string; required: boolean; name: string; value: string }[];
}

let dns: DnsServer;
let service: Service;
let ours: Organization;
before(async () => {
  dns = await startDnsServer();
  service = await startService({}, { dns: makeDns([dns.address], 3_000) });
  ours = await service.organization();
});
after(async () => {
  await service.close();
  await dns.close();
});

let count = 0;
async function verified(name = `k${++count}.example.com`, by = ours): Promise<Domain> {
  const made = (await by.call('POST', '/v1/domains', { json: { name } })).body as Domain;
  for (const { required, name: at, value } of made.records) if (required) dns.txt(at, value);
  const answer = await by.call('POST', `/v1/domains/${made.id}/verify`);
  assert.equal((answer.body as Domain).status, 'verified', answer.text);
  return answer.body as Domain;
}

/** Hands emails over to an SMTP server as a worker does, and gives what came there, in their order. */
async function leave(t: TestContext, ids: readonly string[], secretKey = SECRET_KEY): Promise<string[]> {
  const server = await smtpScript(t, {});
  const deps = {
    pool: service.pool,
    contents: service.deps.contents,
    providers: [smtp(server.url)],
    maxIntervalMs: 1_000,
    ambiguousSend: 'retry' as const,
    ambiguousSendMaxRepeats: 1,
    confirmNotFoundAfterMs: 60_000,
    largeEmails: makeLargeEmails(service.files, log),
    pauses: makeProviderPauses(service.pool, log),
    accountRetryForMs: 72 * 3_600_000,
    recorder: makeAttemptRecorder(service.pool, log),
    stopping: new AbortController().signal,
    sendingDomains: makeSendingDomains(dkimSeal(secretKey), log),
    unsubscribeUrl: (_: string, id: string, position: number) => `https://mail.example/unsubscribe/${id}.${position}`,
    log,
  };
  await deliver(
    deps,
    ids.map((id) => ({ id, version: 0 })),
  );
  return server.messages.map((message) => `${message.replace(/\r\n\.\./g, '\r\n.')}\r\n`);
}

/** What a receiver makes of a message that asks the same name server. */
async function receive(message: string) {
  const { results } = await dkimVerify(Buffer.from(message, 'latin1'), {
    resolver: async (name: string) => {
      const answer = await makeDns([dns.address], 3_000).txt(name);
      if (answer.kind !== 'found') throw Object.assign(new Error('not there'), { code: 'ENOTFOUND' });
      return answer.values.map((value) => [value]);
    },
  });
  const [header = ''] = /^DKIM-Signature:.*(?:\r\n[ \t].*)*/im.exec(message) ?? [];
  const headers = (/\bh=([^;]*)/.exec(header)?.[1] ?? '').toLowerCase().split(/\s*:\s*/);
  return results.map(({ status, signingDomain, selector }) => {
    return { result: status.result, domain: signingDomain, selector, headers };
  });
}

describe('email by SMTP from a domain with a key of ours', () => {
  it('is signed with it, and the signature holds', async (t) => {
    const { name } = await verified();
    const id = await ours.sent({
      from: `"Jürgen, Ä" <hello@${name}>`,
      to: ['Ada <ada@example.net>', 'grace@example.net'],
      cc: 'c@example.net',
      reply_to: 'r@example.net',
      subject: 'Grüße – 你好',
      text: 'A line.\n.\n..dots\n \n\ttabs  and   spaces  \n\n\n',
      html: '<p>Ünïcode</p>',
      headers: { 'X-Order': '4711' },
      attachments: [{ filename: 'a.txt', content: Buffer.from('a file').toString('base64') }],
    });
    const [message = ''] = await leave(t, [id]);
    const [signature, ...more] = await receive(message);
    assert.deepEqual(more, []);
    assert.deepEqual([signature?.result, signature?.domain, signature?.selector], ['pass', name, 'sw1']);
    for (const header of [
      'from',
      'to',
      'cc',
      'reply-to',
      'subject',
      'date',
      'message-id',
      'mime-version',
      'content-type',
    ]) {
      assert.ok(signature?.headers.includes(header), header);
    }
    for (const [what, changed] of [
      ['its body', message.replace('A line.', 'A lime.')],
      ['its subject', message.replace(/^Subject: .*$/m, 'Subject: Another')],
      ['its sender', message.replace(/^From: .*$/m, `From: <other@${name}>`)],
    ] as const) {
      assert.notEqual(changed, message, what);
      assert.equal((await receive(changed))[0]?.result === 'pass', false, `${what} was changed`);
    }
  });

  it('marketing email is signed with its unsubscribe headers, each copy on its own', async (t) => {
    const { name } = await verified();
    const id = await ours.sent({
      ...{ from: `a@${name}`, to: ['m1@example.net', 'm2@example.net'], marketing: true },
      text: 'Bye: {{{unsubscribe_url}}}',
    });
    const messages = await leave(t, [id]);
    assert.equal(messages.length, 2);
    for (const message of messages) {
      const [signature] = await receive(message);
      assert.equal(signature?.result, 'pass');
      for (const header of ['list-unsubscribe', 'list-unsubscribe-post'])
        assert.ok(signature.headers.includes(header), header);
      const forged = message.replace(/^(List-Unsubscribe:\s+<https:\/\/)mail/m, '$1evil');
      assert.notEqual(forged, message);
      assert.notEqual((await receive(forged))[0]?.result, 'pass');
    }
  });

  it('of a group from several domains each is signed with its own key, which are read in one statement', async (t) => {
    const theirs = await service.organization();
    const [first, second, other] = [await verified(), await verified(), await verified(undefined, theirs)];
    const trusted = `t${++count}.example.com`;
    await ours.addDomain(trusted);
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      for (const domain of [first, second]) ids.push(await ours.sent({ from: `a@${domain.name}` }));
    }
    ids.push(await theirs.sent({ from: `a@${other.name}` }), await ours.sent({ from: `a@${trusted}` }));
    const messages = await leave(t, ids);
    const domains: string[] = [];
    for (const message of messages) {
      const from = /^From: .*@([\w.]+)/m.exec(message)?.[1] ?? '';
      const [signature] = await receive(message);
      if (from === trusted) assert.equal(signature?.result, 'none', 'a domain without a key goes unsigned');
      else assert.deepEqual([signature?.result, signature?.domain], ['pass', from]);
      domains.push(from);
    }
    assert.deepEqual(
      domains.sort(),
      [first, first, first, second, second, second, other]
        .map(({ name }) => name)
        .concat(trusted)
        .sort(),
    );
  });

  it('is not signed while the key is not in DNS', async (t) => {
    const { id, name } = await verified();
    dns.clear(`sw1._domainkey.${name}`);
    await service.pool.query('UPDATE domains SET asked_at = NULL');
    const checked = await ours.call('POST', `/v1/domains/${id}/verify`);
    assert.equal((checked.body as Domain).status, 'verified');
    const [message = ''] = await leave(t, [await ours.sent({ from: `a@${name}` })]);
    assert.doesNotMatch(message, /^DKIM-Signature:/im);
  });

  it('leaves unsigned when the key cannot be opened any more', async (t) => {
    const { name } = await verified();
    const [message = ''] = await leave(
      t,
      [await ours.sent({ from: `a@${name}` })],
      'another secret key, also long enough',
    );
    assert.match(message, /^From: /m);
    assert.doesNotMatch(message, /^DKIM-Signature:/im);
  });
});

describe('email that waits to be sent', () => {
  const state = async (id: string) => {
    const { status, error } = await ours.email(id);
    return [status, error];
  };

  for (const [what, change, says] of [
    ['was deleted', async ({ id }: Domain) => ours.call('DELETE', `/v1/domains/${id}`), 'was deleted'],
    [
      'has failed',
      async ({ id }: Domain) =>
        service.pool.query(
          `UPDATE domains SET status = 'failed', verified_at = NULL, next_check_at = NULL WHERE id = $1`,
          [id],
        ),
      'is not verified any more',
    ],
    [
      'is another organization’s now',
      async ({ id, name }: Domain) => {
        await ours.call('DELETE', `/v1/domains/${id}`);
        await verified(name, await service.organization());
      },
      'was deleted',
    ],
  ] as const) {
    it(`fails when its domain ${what}, and nothing leaves`, async (t) => {
      const domain = await verified();
      const id = await ours.sent({ from: `a@${domain.name}`, scheduled_at: inFuture({ hours: 1 }) });
      const stays = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
      await service.pool.query(`UPDATE emails SET scheduled_at = now() - interval '1 s' WHERE id = ANY ($1)`, [
        [id, stays],
      ]);
      await change(domain);
      const messages = await leave(t, [id, stays]);
      assert.deepEqual(await state(id), ['failed', `This email cannot be sent: the domain ${domain.name} ${says}.`]);
      assert.deepEqual(await state(stays), ['sent', null]);
      assert.equal(messages.length, 1);
    });
  }
});
