import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SuppressionOrigin } from '../../src/domain/email/suppression.ts';
import { listAudit } from '../../src/store/accounts/audit.ts';
import { type Organization, useService } from '../http/service.ts';
import { address, putSuppression } from '../http/suppression-list.ts';
import { type Person, signedIn, textOf } from './visitor.ts';

const PATH = '/dashboard/suppressions';

const service = await useService();

interface Fixture {
  readonly ours: Organization;
  readonly member: Person;
  readonly put: (email: string, origin?: SuppressionOrigin, fields?: object) => Promise<string>;
  /** @returns the origins of an address on the list */
  readonly origins: (email: string) => Promise<unknown[]>;
}

/** An organization of its own, so that its list is empty. */
async function fixture(): Promise<Fixture> {
  const ours = await service.organization();
  return {
    ours,
    member: await signedIn(service, ours.id, 'member'),
    put: (email, origin = 'bounce', fields = {}) => putSuppression(service.pool, ours.id, email, origin, fields),
    async origins(email) {
      const { body } = await ours.call('GET', `/v1/suppressions?email=${encodeURIComponent(email)}`);
      return (body as { suppressions: { origin: string }[] }).suppressions.map(({ origin }) => origin);
    },
  };
}

describe('the list', () => {
  it('is searched by address in any case, and by origin', async () => {
    const { member, put } = await fixture();
    const [ada, bob] = [address(), address()];
    await put(ada, 'bounce', { reason: 'mailbox_not_found' });
    await put(bob, 'complaint');
    const shown = async (query: string) => textOf((await member.get(PATH + query)).html);
    const all = await shown('');
    assert.match(all, new RegExp(`${ada} bounce mailbox not found`));
    assert.ok(all.includes(bob), all);
    const one = await shown(`?email=${ada.toUpperCase()}`);
    assert.ok(one.includes(`${ada} bounce`) && !one.includes(bob), one);
    const complained = await shown('?origin=complaint&email=');
    assert.ok(complained.includes(bob) && !complained.includes(ada), complained);
    assert.ok((await shown(`?email=${ada}&origin=manual`)).includes('No suppressed addresses match'), 'both count');
    const wrong = await member.get(`${PATH}?email=nonsense`);
    assert.equal(wrong.status, 422);
    assert.match(wrong.html, /id="field-email-problem"/);
    assert.ok(!wrong.html.includes('<table'), 'nothing is listed below the problem');
    assert.match(wrong.html, /value="nonsense"/);
  });

  it('is paginated, and a removed address is no longer suppressed', async () => {
    const { ours, member, put, origins } = await fixture();
    const [first = '', ...rest] = Array.from({ length: 52 }, address);
    const id = await put(first);
    await ours.call('POST', '/v1/suppressions', { json: { emails: rest } });
    const page = await member.get(PATH);
    const [, next = ''] = /<a href="([^"]+)" rel="next">/.exec(page.html) ?? [];
    const older = await member.get(next);
    assert.ok(!page.html.includes(`>${first}<`) && older.html.includes(first), 'the oldest is on the second page');
    const wakes = service.wakes();
    const removed = await member.change(`${PATH}/${id}/remove`);
    assert.ok(textOf(removed.html).includes(`${first} was removed from the suppression list.`), textOf(removed.html));
    assert.deepEqual(await origins(first), []);
    assert.equal(service.wakes(), wakes + 1);
    assert.equal((await member.post(`${PATH}/${id}/remove`)).status, 404);
    const [entry] = await listAudit(service.pool, ours.id, null, 1);
    assert.deepEqual(
      [entry?.action, entry?.target, entry?.detail],
      ['suppressions.delete', id, { email: first, origin: 'bounce' }],
    );
  });
});

describe('adding', () => {
  it('adds an address, and reports one that was on the list', async () => {
    const { ours, member, origins } = await fixture();
    const email = address();
    const wakes = service.wakes();
    const added = await member.change(`${PATH}/add`, { addresses: ` Ada <${email.toUpperCase()}> ` });
    assert.ok(textOf(added.html).includes('1 address was added.'), textOf(added.html));
    assert.deepEqual(await origins(email), ['manual']);
    assert.equal(service.wakes(), wakes + 1);
    const [entry] = await listAudit(service.pool, ours.id, null, 1);
    assert.equal(entry?.action, 'suppressions.create');
    assert.match(String(entry.target), /^sup_/);
    const again = await member.change(`${PATH}/add`, { addresses: email });
    assert.ok(textOf(again.html).includes('0 addresses were added. 1 was on the list already.'), textOf(again.html));
  });

  for (const [name, lines] of [
    ['lines', ['a@x.example', '', '"Doe, Bob" <b@x.example>', 'c@x.example']],
    ['values without a heading', ['a@x.example,Ada,1', 'b@x.example,"Bob, the other",2', 'Carol;c@x.example']],
    [
      'a column',
      ['\uFEFFid,Email,name', '1,a@x.example,"Ada', 'Lovelace"', '2,B@x.example,b@y.example', '3,c@x.example,'],
    ],
    ['other separators', ['Name;E-Mail', 'Ada;a@x.example', 'Bob;b@x.example', ';c@x.example']],
  ] as const) {
    it(`reads ${name}`, async () => {
      const { ours, member } = await fixture();
      const shown = await member.change(`${PATH}/add`, { addresses: lines.join('\n') });
      assert.ok(textOf(shown.html).includes('3 addresses were added.'), textOf(shown.html));
      const { body } = await ours.call('GET', '/v1/suppressions');
      const listed = (body as { suppressions: { email: string }[] }).suppressions.map(({ email }) => email);
      assert.deepEqual(listed.sort(), ['a@x.example', 'b@x.example', 'c@x.example']);
    });
  }

  it('adds thousands in one request and returns the refused lines', async () => {
    const { member, origins } = await fixture();
    const good = Array.from({ length: 5_000 }, address);
    const lines = [...good.slice(0, 2_500), 'no <address>', ...good.slice(2_500), 'also none@', 'nobody'];
    const { status, html } = await member.post(`${PATH}/add`, { addresses: lines.join('\r\n') });
    assert.equal(status, 200, textOf(html));
    const text = textOf(html);
    assert.ok(text.includes('5,000 addresses were added.') && text.includes('3 were refused.'), text);
    assert.match(text, /2501 no <address> contains no address 5002 also none@ .+ 5003 nobody contains no address/);
    assert.match(html, /<textarea[^>]*>no &lt;address(?:&gt;|>)\nalso none@\nnobody<\/textarea>/);
    assert.deepEqual(await origins(good.at(-1) ?? ''), ['manual']);
  });

  for (const [problem, addresses] of [
    ['Please fill this in', ''],
    ['line 4: has a quotation mark in a wrong place', 'email\na@x.example\n"b@x.example\nc@x.example'],
    [
      'contains 10,001 addresses; send 10,000 at a time',
      Array.from({ length: 10_001 }, (_, n) => `${n}@x.example`).join('\n'),
    ],
  ] as const) {
    it(`adds nothing if the input is not valid: ${problem}`, async () => {
      const { ours, member } = await fixture();
      const { status, html } = await member.post(`${PATH}/add`, { addresses });
      assert.equal(status, 422);
      assert.match(html, new RegExp(`id="field-addresses-problem"[^>]*>${problem}`));
      const { body } = await ours.call('GET', '/v1/suppressions');
      assert.deepEqual((body as { suppressions: unknown[] }).suppressions, []);
    });
  }
});

describe('the download', () => {
  it('is a CSV file of the own list, by origin if requested', async () => {
    const { ours, member, put } = await fixture();
    const other = await fixture();
    await other.put(address());
    const [ada, bob] = [address(), address()];
    const emailId = await ours.sent();
    await put(ada, 'bounce', { reason: 'mailbox_not_found', message_id: emailId });
    await put(bob, 'manual');
    const { headers, html } = await member.get(`${PATH}/download`);
    assert.match(String(headers['content-type']), /^text\/csv/);
    assert.match(String(headers['content-disposition']), /^attachment; filename="suppressions-\d{4}-\d\d-\d\d\.csv"$/);
    assert.equal(headers['cache-control'], 'no-store');
    const [heading, latest = '', oldest = '', ...more] = html.split('\r\n');
    assert.equal(heading, 'email,origin,reason,email_id,created_at');
    assert.match(latest, new RegExp(`^${bob},manual,,,\\d{4}-.*Z$`));
    assert.match(oldest, new RegExp(`^${ada},bounce,mailbox_not_found,${emailId},\\d{4}-.*Z$`));
    assert.deepEqual(more, ['']);
    const manual = await member.get(`${PATH}/download?origin=manual`);
    assert.deepEqual(manual.html.split('\r\n').slice(1), [latest, '']);
  });

  it('holds every entry of a long list once, and can be imported again', async () => {
    const { ours, member } = await fixture();
    const emails = Array.from({ length: 2_001 }, address);
    for (let begin = 0; begin < emails.length; begin += 1_000) {
      await ours.call('POST', '/v1/suppressions', { json: { emails: emails.slice(begin, begin + 1_000) } });
    }
    const { html } = await member.get(`${PATH}/download`);
    const listed = html
      .trim()
      .split('\r\n')
      .slice(1)
      .map((line) => line.split(',')[0]);
    assert.deepEqual(listed.sort(), [...emails].sort());
    const next = await fixture();
    const back = await next.member.change(`${PATH}/add`, { addresses: html });
    assert.ok(textOf(back.html).includes('2,001 addresses were added.'), textOf(back.html));
  });

  it('escapes formulas for spreadsheets, and can be imported again', async () => {
    const { member, put } = await fixture();
    const emails = ['=1+1@x.example', '+49@x.example', '-1@x.example'];
    for (const email of emails) await put(email, 'manual');
    const { html } = await member.get(`${PATH}/download`);
    for (const line of html.split('\r\n')) assert.doesNotMatch(line, /^["\s]*[=+\-@]/);
    for (const email of emails) assert.ok(html.includes(`'${email},manual`), html);
    const next = await fixture();
    await next.member.change(`${PATH}/add`, { addresses: html });
    for (const email of emails) assert.deepEqual(await next.origins(email), ['manual'], email);
  });
});
