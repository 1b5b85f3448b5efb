import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { termKey } from '../../src/store/emails/search-index.ts';
import { indexEmails } from '../../src/upkeep/search-index.ts';
import { force } from '../store/mail.ts';
import { assertRefused, bodyOf, type Organization, useService } from './service.ts';

/** Searches for emails. What combinations of filters find is tested in test/store/email-search.test.ts. */
const service = await useService();

async function idsOf(org: Organization, query: string): Promise<string[]> {
  const answer = await org.call('GET', `/v1/emails?${query}`);
  return bodyOf<{ emails: { id: string }[] }>(answer, 200).emails.map(({ id }) => id);
}

describe('GET /v1/emails', () => {
  let ours: Organization;
  let theirs: Organization;
  const sent: Record<'june' | 'july' | 'bounced', string> = { june: '', july: '', bounced: '' };
  before(async () => {
    [ours, theirs] = [await service.organization(), await service.organization()];
    sent.june = await ours.sent({ to: 'Ada <Ada@Example.net>', subject: 'Your receipt for June' });
    sent.july = await ours.sent({ to: 'bea@example.org', cc: 'ADA@example.net', subject: 'Your receipt for July' });
    sent.bounced = await ours.sent({ to: 'cy@example.org', bcc: 'dora@sub.example.net', subject: 'Hello' });
    await force(service.pool, sent.bounced, 'bounced');
    await theirs.sent({ to: 'ada@example.net', subject: 'Your receipt' });
  });

  const FILTERS: readonly (readonly [string, readonly (keyof typeof sent)[]])[] = [
    ['to=ada%40example.net', ['july', 'june']],
    ['to=ADA%40EXAMPLE.NET', ['july', 'june']],
    ['to=%40example.net', ['july', 'june']],
    ['to=%40sub.example.net', ['bounced']],
    ['to=dora%40sub.example.net', ['bounced']],
    ['subject=receipt', ['july', 'june']],
    ['subject=RECEIPT+june', ['june']],
    ['subject=recei', []],
    ['to=ada%40example.net&subject=july', ['july']],
    ['status=bounced', ['bounced']],
    ['status=bounced&status=queued', ['bounced', 'july', 'june']],
    ['bounce_reason=mailbox_full', ['bounced']],
    ['bounce_reason=mailbox_full&status=queued', []],
    ['created_after=2999-01-01T00:00:00Z', []],
    ['created_before=2999-01-01T00:00:00Z', ['bounced', 'july', 'june']],
  ];
  const assertFinds = async () => {
    for (const [query, names] of FILTERS) {
      assert.deepEqual(
        await idsOf(ours, query),
        names.map((name) => sent[name]),
        query,
      );
    }
  };

  it('finds emails as soon as they are accepted, of its organization only', assertFinds);

  it('finds the same by the index', async () => {
    await indexEmails(service.pool, { blockSize: 1, settledMs: 0 });
    const { rows } = await service.pool.query(`SELECT FROM email_terms WHERE term = $1`, [
      termKey(ours.id, 'to:ada@example.net'),
    ]);
    assert.ok(rows.length > 0, 'the recipient is indexed');
    await assertFinds();
  });

  it('finds emails from an address and a domain', async () => {
    const { emails } = bodyOf<{ emails: { from: string }[] }>(await ours.call('GET', '/v1/emails'), 200);
    const address = /[^<]+@[^>]+/.exec(emails[0]?.from ?? '')?.[0] ?? '';
    const domain = address.slice(address.indexOf('@'));
    for (const from of [address, address.toUpperCase(), domain]) {
      assert.deepEqual(await idsOf(ours, `from=${encodeURIComponent(from)}`), [sent.bounced, sent.july, sent.june]);
    }
    assert.deepEqual(await idsOf(ours, 'from=%40other.example'), []);
  });

  it('includes created_after and excludes created_before', async () => {
    const { created_at: at } = (await ours.email(sent.july)) as { created_at: string };
    assert.ok((await idsOf(ours, `created_after=${at}`)).includes(sent.july));
    assert.ok(!(await idsOf(ours, `created_before=${at}`)).includes(sent.july));
  });

  it('binds cursors to all filters', async () => {
    const query = 'to=ada%40example.net&subject=receipt&status=queued&status=sent';
    const answer = await ours.call('GET', `/v1/emails?${query}&limit=1`);
    const { next_cursor: cursor } = bodyOf<{ next_cursor: string }>(answer, 200);
    const same = 'subject=Receipt&status=sent&status=queued&to=Ada%40Example.net';
    assert.deepEqual(await idsOf(ours, `${same}&cursor=${cursor}`), [sent.june]);
    for (const other of ['to=ada%40example.net', `${query}&bounce_reason=unknown`, query.replace('receipt', 'june')]) {
      assertRefused(await ours.call('GET', `/v1/emails?${other}&cursor=${cursor}`), 422, 'validation_error', 'cursor');
    }
  });

  it('finds a recipient no longer by its address once it is erased, but by its placeholder', async () => {
    const org = await service.organization();
    const id = await org.sent({ to: 'canary@example.net' });
    await indexEmails(service.pool, { blockSize: 1, settledMs: 0 });
    bodyOf(await org.call('POST', '/v1/erasures', { json: { email: 'canary@example.net' } }), 200);
    assert.deepEqual(await idsOf(org, 'to=canary%40example.net'), []);
    assert.deepEqual(await idsOf(org, 'to=%40example.net'), []);
    const { rows } = await service.pool.query(`SELECT FROM email_terms WHERE term = $1`, [
      termKey(org.id, 'to:canary@example.net'),
    ]);
    assert.equal(rows.length, 0, 'the index does not contain the address');
    const { to } = (await org.email(id)) as { to: string[] };
    assert.deepEqual(await idsOf(org, `to=${encodeURIComponent(to[0] ?? '')}`), [id]);
    assert.deepEqual(await idsOf(org, 'to=%40erased.invalid'), [id]);
  });
});

describe('a search parameter', () => {
  for (const [query, param] of [
    ...['to', 'from', 'subject', 'created_after', 'created_before', 'bounce_reason', 'status'].flatMap((name) => [
      [`${name}=`, name],
      [`${name}=%20`, name],
    ]),
    ...['ada', '@net', 'a@b@c.example', 'a@b.example&to=b@b.example'].map((to) => [`to=${to}`, 'to']),
    ['from=example.net', 'from'],
    ...['%21%21', 'a+b+c+d+e+f+g+h+i+j+k', 'a&subject=b'].map((subject) => [`subject=${subject}`, 'subject']),
    ...['yesterday', '2026-01-01'].map((time) => [`created_after=${time}`, 'created_after']),
    ['created_before=2026-13-01T00:00:00Z', 'created_before'],
    ['bounce_reason=full', 'bounce_reason'],
    ['status=sent&status=x', 'status'],
  ] as [string, string][]) {
    it(`${query} is refused with 422 and its name`, async () => {
      const org = await service.organization();
      assertRefused(await org.call('GET', `/v1/emails?${query}`), 422, 'validation_error', param);
    });
  }
});
