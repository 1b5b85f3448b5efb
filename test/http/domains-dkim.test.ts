import assert from 'node:assert/strict';
import { after, describe, it, type TestContext } from 'node:test';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { pino } from 'pino';
import { makeLargeEmails } from '../../src/delivery/email/large-emails.ts';
import { makeSendingDomains } from '../../src/delivery/email/sending-domains.ts';
import { makeDns } from '../../src/providers/dns.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { dkimSeal } from '../../src/sender-domains/deps.ts';
import { harness } from '../delivery/harness.ts';
import { smtpScript } from '../providers/smtp-script.ts';
import { type Domain, startRegistrar } from './registrar.ts';
import { inFuture, SECRET_KEY } from './service.ts';

const log = pino({ level: 'silent' });

const registrar = await startRegistrar();
after(() => registrar.close());
const { service, ours, theirs, dns } = registrar;

/** Sends emails to an SMTP server as a worker does. @returns the messages it received, in order */
async function sendBySmtp(t: TestContext, ids: readonly string[], secretKey = SECRET_KEY): Promise<string[]> {
  const server = await smtpScript(t, {});
  const there = harness(service.pool, ours.id, [], {
    contents: service.deps.contents,
    providers: [smtp(server.url)],
    largeEmails: makeLargeEmails(service.pool, service.files, log),
    sendingDomains: makeSendingDomains(dkimSeal(secretKey), log),
  });
  await there.deliver(...ids.map((id) => ({ id, version: 0 })));
  return server.messages.map((message) => `${message.replace(/\r\n\.\./g, '\r\n.')}\r\n`);
}

/** Verifies the signatures of a message like a receiver that queries the same name server. */
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
  it('is signed with it, and changes invalidate the signature', async (t) => {
    const { name } = await registrar.verified();
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
    const [message = ''] = await sendBySmtp(t, [id]);
    const [signature, ...more] = await receive(message);
    assert.deepEqual(more, []);
    assert.deepEqual([signature?.result, signature?.domain, signature?.selector], ['pass', name, 'sw1']);
    for (const header of 'from to cc reply-to subject date message-id mime-version content-type'.split(' ')) {
      assert.ok(signature?.headers.includes(header), header);
    }
    for (const [part, changed] of [
      ['its body', message.replace('A line.', 'A lime.')],
      ['its subject', message.replace(/^Subject: .*$/m, 'Subject: Another')],
      ['its sender', message.replace(/^From: .*$/m, `From: <other@${name}>`)],
    ] as const) {
      assert.notEqual(changed, message, part);
      assert.equal((await receive(changed))[0]?.result === 'pass', false, `${part} was changed`);
    }
  });

  it('is signed with its unsubscribe headers for each copy of a marketing email', async (t) => {
    const { name } = await registrar.verified();
    const id = await ours.sent({
      ...{ from: `a@${name}`, to: ['m1@example.net', 'm2@example.net'], marketing: true },
      text: 'Bye: {{{unsubscribe_url}}}',
    });
    const messages = await sendBySmtp(t, [id]);
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

  it('is signed with the key of its own domain in a group from several domains', async (t) => {
    const [first, second, other] = [
      await registrar.verified(),
      await registrar.verified(),
      await registrar.verified(registrar.fresh(), theirs),
    ];
    const trusted = registrar.fresh();
    await ours.addDomain(trusted);
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      for (const domain of [first, second]) ids.push(await ours.sent({ from: `a@${domain.name}` }));
    }
    ids.push(await theirs.sent({ from: `a@${other.name}` }), await ours.sent({ from: `a@${trusted}` }));
    const messages = await sendBySmtp(t, ids);
    assert.equal(messages.length, ids.length);
    for (const message of messages) {
      const from = /^From: .*@([\w.]+)/m.exec(message)?.[1] ?? '';
      const [signature] = await receive(message);
      if (from === trusted) assert.equal(signature?.result, 'none', 'email from a domain without a key is not signed');
      else assert.deepEqual([signature?.result, signature?.domain], ['pass', from]);
    }
  });

  it('is not signed while the key is not in DNS', async (t) => {
    const { id, name } = await registrar.verified();
    dns.clear(`sw1._domainkey.${name}`);
    assert.equal((await registrar.verify(id)).status, 'verified');
    const [message = ''] = await sendBySmtp(t, [await ours.sent({ from: `a@${name}` })]);
    assert.doesNotMatch(message, /^DKIM-Signature:/im);
  });

  it('is sent unsigned if the key cannot be decrypted', async (t) => {
    const { name } = await registrar.verified();
    const ids = [await ours.sent({ from: `a@${name}` })];
    const [message = ''] = await sendBySmtp(t, ids, 'another secret key, also long enough');
    assert.match(message, /^From: /m);
    assert.doesNotMatch(message, /^DKIM-Signature:/im);
  });
});

describe('scheduled email', () => {
  const unverify = `UPDATE domains SET status = 'failed', verified_at = NULL, next_check_at = NULL WHERE id = $1`;
  for (const [name, change, message] of [
    ['was deleted', ({ id }: Domain) => ours.call('DELETE', `/v1/domains/${id}`), 'was deleted'],
    ['has failed', ({ id }: Domain) => service.pool.query(unverify, [id]), 'is no longer verified'],
    [
      'belongs to another organization',
      async (domain: Domain) => {
        await ours.call('DELETE', `/v1/domains/${domain.id}`);
        await registrar.verified(domain.name, theirs);
      },
      'was deleted',
    ],
  ] as const) {
    it(`fails if its domain ${name}, and is not sent`, async (t) => {
      const domain = await registrar.verified();
      const id = await ours.sent({ from: `a@${domain.name}`, scheduled_at: inFuture({ hours: 1 }) });
      const other = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
      await service.pool.query(`UPDATE emails SET scheduled_at = now() - interval '1 s' WHERE id = ANY ($1)`, [
        [id, other],
      ]);
      await change(domain);
      const messages = await sendBySmtp(t, [id, other]);
      const [failed, sent] = [await ours.email(id), await ours.email(other)];
      const error = `This email cannot be sent: the domain ${domain.name} ${message}.`;
      assert.deepEqual([failed['status'], failed['error']], ['failed', error]);
      assert.deepEqual([sent['status'], sent['error']], ['sent', null]);
      assert.equal(messages.length, 1);
    });
  }
});
