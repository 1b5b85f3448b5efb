import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { harness, ScriptedProvider } from '../delivery/harness.ts';
import { eraseRecipient } from '../../src/intake/erasure.ts';
import { insertAudit } from '../../src/store/accounts/audit.ts';
import { keepCallback } from '../../src/store/emails/callbacks.ts';
import { project } from '../../src/projection/emails.ts';
import { enqueueEvents } from '../../src/store/webhooks/events.ts';
import { force } from '../store/mail.ts';
import { assertRefused, bodyOf, inFuture, type Organization, useService } from './service.ts';

const ADDRESS = 'canary.person@example.net';
const LONGER = 'other.canary.person@example.net';

const inForm = (q: string) => new URLSearchParams({ q }).toString();

const service = await useService();
const [ours, theirs] = [await service.organization(), await service.organization()];

describe('erasing a recipient', () => {
  async function erase(email = ADDRESS): Promise<Record<string, number>> {
    const answer = await ours.call('POST', '/v1/erasures', { json: { email } });
    const { report, ...rest } = bodyOf<{ report: Record<string, number> }>(answer, 200);
    assert.deepEqual(rest, { has_more: false, next_cursor: null });
    return report;
  }

  /** An email that was sent and delivered to the address. */
  async function delivered(by: Organization, fields: Record<string, unknown>): Promise<string> {
    const id = await by.sent(fields);
    await force(service.pool, id, 'sent');
    await project(service.pool, 'delivered', [{ id, recipient: ADDRESS, dedupe_key: `delivered ${ADDRESS}` }]);
    return id;
  }

  /** Tables whose rows contain the address, in any case and also as bytes. */
  async function tablesNaming(orgId: string): Promise<string[]> {
    const { rows } = await service.pool.query<{ name: string }>(
      `SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = current_schema()`,
    );
    const naming: string[] = [];
    for (const { name } of rows) {
      const { rows: found } = await service.pool.query<{ row: string }>(
        `SELECT t::text AS row FROM ${name} t WHERE t::text ~* $1 AND t::text NOT LIKE '%' || $2 || '%'`,
        ['(?<!other\\.)canary\\.person', orgId],
      );
      if (found.length > 0) naming.push(name);
    }
    return naming;
  }

  it('removes the address from all rows of the organization and reports the counts', async () => {
    const hook = await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
    assert.equal(hook.status, 201);
    const attachments = [{ filename: 'a.txt', content: 'aGk=' }];
    // The state of an only recipient is that of the email, except for copies of marketing email.
    const copied = { marketing: true };
    const to = `Ada <${ADDRESS.toUpperCase()}>`;
    const alone = await delivered(ours, { ...copied, to, headers: { 'X-A': 'a' }, attachments });
    const together = await delivered(ours, { to: ['b@example.net', ADDRESS], cc: LONGER, reply_to: ADDRESS });
    const scheduled = await ours.sent({ to: ADDRESS, scheduled_at: inFuture({ hours: 2 }) });
    const bounced = await ours.sent({ ...copied, to: ADDRESS });
    const elsewhere = await ours.sent({ ...copied, to: 'forwarded@example.net' });
    await project(service.pool, 'delivery_delayed', [
      { id: elsewhere, recipient: 'forwarded@example.net', error: `450 <${ADDRESS}> is busy`, dedupe_key: 'delayed' },
    ]);
    await project(service.pool, 'bounced', [
      { id: bounced, recipient: ADDRESS, error: `550 <${ADDRESS}> unknown`, bounce_reason: 'mailbox_not_found' },
    ]);
    await service.pool.query(
      `INSERT INTO attempts (message_id, n, call, provider, outcome, detail) VALUES ($1, 1, 'c', 'smtp', 'refused', $2)`,
      [bounced, `550 ${ADDRESS} unknown`],
    );
    const retried = await ours.sent({ to: 'list@example.net' });
    await service.pool.query(
      `INSERT INTO attempts (message_id, n, call, provider, outcome, detail) VALUES ($1, 1, 'c', 'smtp', 'again', $2)`,
      [retried, `451 <${ADDRESS}> greylisted`],
    );
    // One of several copies.
    const copies = await ours.sent({ ...copied, to: 'list@example.net' });
    await service.pool.query(
      `INSERT INTO email_recipients (email_id, recipient, status, error) VALUES ($1, 'list@example.net', 'rejected', $2)`,
      [copies, `550 <${ADDRESS}> unknown`],
    );
    // Answers that are recorded but not applied yet.
    const forwarded = await ours.sent({ to: 'team@example.net' });
    for (const [id, recipient] of [
      [together, ADDRESS],
      [forwarded, 'team@example.net'],
    ] as const) {
      const bounced = [{ id, recipient, error: `550 <${ADDRESS}> unknown` }];
      await service.pool.query(
        `INSERT INTO attempts (message_id, n, call, provider, outcome, changes) VALUES ($1, 1, 'c', 'smtp', 'refused', $2)`,
        [id, JSON.stringify({ copies: [], sent: [], bounced, rejected: [] })],
      );
    }
    await service.pool.query(`UPDATE webhook_events SET payload = data::text WHERE org_id = $1`, [ours.id]);
    await ours.call('POST', '/v1/suppressions', { json: { email: ADDRESS } });
    const system = { actor_kind: 'system', actor_id: 'test', action: 'suppressions.delete' } as const;
    await insertAudit(service.pool, { ...system, org_id: ours.id, target: ADDRESS, detail: { email: ADDRESS } });
    await keepCallback(service.pool, 'postmark', JSON.stringify({ Recipient: ADDRESS }));
    const untouched = await ours.sent({ to: LONGER });
    const foreign = await theirs.sent({ to: ADDRESS });
    const file = ((await ours.email(alone))['attachments'] as { id: string }[])[0]?.id ?? '';

    const report = await erase();
    assert.deepEqual(
      { ...report, events: 0, webhook_events: 0 },
      {
        ...{ emails: 4, contents: 2, files: 1, events: 0, recipients: 5, attempts: 4 },
        ...{ webhook_events: 0, audit_entries: 1, provider_callbacks: 0, suppressions: 1 },
        ...{ messages: 0, received: 0, contacts: 0 },
      },
    );
    assert.ok((report['events'] ?? 0) >= 3 && (report['webhook_events'] ?? 0) >= 3, JSON.stringify(report));
    const { rows } = await service.pool.query<{ id: string }>('SELECT id FROM emails WHERE org_id = $1', [theirs.id]);
    assert.deepEqual(rows, [{ id: foreign }]);
    // The other organization's email still names it, and nothing else does.
    assert.deepEqual(await tablesNaming(theirs.id), []);
    assert.deepEqual((await theirs.email(foreign))['to'], [ADDRESS]);

    const email = await ours.email(together);
    const [first, placeholder = ''] = email['to'] as string[];
    assert.equal(first, 'b@example.net');
    assert.match(placeholder, /^erased-[0-9a-f]{16}@erased\.invalid$/);
    assert.deepEqual([email['cc'], email['reply_to']], [[LONGER], [placeholder]]);
    assert.deepEqual((await ours.email(untouched))['to'], [LONGER], 'an address that contains it stays');
    for (const id of [alone, bounced]) {
      assertRefused(await ours.call('GET', `/v1/emails/${id}/content`), 410, 'content_erased');
    }
    assert.equal(await service.files.open(file), undefined);
    for (const id of [together, scheduled]) {
      assert.equal((await ours.call('GET', `/v1/emails/${id}/content`)).status, 200);
    }
  });

  it('changes nothing if it is repeated', async () => {
    for (const [what, count] of Object.entries(await erase())) assert.equal(count, 0, what);
  });

  it('also removes a report that arrives again afterwards', async () => {
    const id = await delivered(ours, { to: 'late@example.net' });
    for (let i = 0; i < 2; i++) {
      await project(service.pool, 'delivered', [{ id, recipient: ADDRESS, dedupe_key: `delivered ${ADDRESS}` }]);
      await erase();
    }
    assert.deepEqual(await tablesNaming(theirs.id), []);
  });

  for (const asked of ['ada_1@xn--bcher-kva.example', 'ADA_1@bücher.example']) {
    it(`finds ${asked} in emails to a domain that was written in Unicode`, async () => {
      const to = 'Ada <Ada_1@Bücher.example>';
      const spellings = [to, 'ada_1@xn--bcher-kva.example', 'ada_1@bücher。example', 'ada_1@bu\u0308cher.example'];
      const ids = [];
      for (const spelling of spellings) ids.push(await ours.sent({ to: spelling }));
      for (const id of ids) await force(service.pool, id, 'sent');
      const other = await ours.sent({ to: 'adab1@bücher.example' });
      await service.pool.query(
        `UPDATE webhook_events AS event SET payload = jsonb_build_object('to', email."to")::text
         FROM emails AS email WHERE email.id = event.message_id`,
      );
      const report = await erase(asked);
      assert.equal(report['emails'], spellings.length);
      assert.ok((report['webhook_events'] ?? 0) >= 1, JSON.stringify(report));
      const { rows } = await service.pool.query<{ id: string }>(
        `SELECT DISTINCT email.id FROM emails AS email JOIN webhook_events AS event ON event.message_id = email.id
         WHERE concat(email."to", event.payload) ~* 'ada.1@'`,
      );
      assert.deepEqual(rows, [{ id: other }]);
      await service.pool.query('DELETE FROM emails WHERE id = $1', [other]);
    });
  }

  it('finds the address in quotes, in the parts of a URL and after an equals sign, but not within a longer one', async () => {
    const reply = (text: string) => `550 '${text}' is unknown; orig_to=${text} \`${text}\` https://x.example/${text}/`;
    const id = await ours.sent({ to: 'list@example.net' });
    await force(service.pool, id, 'sent');
    await project(service.pool, 'delivery_delayed', [{ id, recipient: 'list@example.net', error: reply(ADDRESS) }]);
    const link = `https://x.example/?email=${encodeURIComponent(ADDRESS)}&user=${ADDRESS}`;
    await project(service.pool, 'clicked', [{ id, recipient: 'list@example.net', link }]);
    await erase();
    assert.deepEqual(await tablesNaming(theirs.id), []);

    const longer = `o'${ADDRESS} ${LONGER}`;
    const other = await ours.sent({ to: 'list@example.net' });
    await force(service.pool, other, 'sent');
    await project(service.pool, 'bounced', [
      { id: other, recipient: 'list@example.net', error: longer, bounce_reason: 'unknown' },
    ]);
    await erase();
    assert.equal((await ours.email(other))['error'], longer);
  });

  for (const [name, address, texts] of [
    ['after an escape of JSON', ADDRESS, [`It is:\n${ADDRESS}`, `\t${ADDRESS}\r\n`, `\u0001${ADDRESS}`]],
    [
      'in the parameters of a URL',
      ADDRESS,
      [`?q=Ada+%3C${encodeURIComponent(ADDRESS)}%3E`, `?q=to:${ADDRESS}`, `?q=Ada%20${ADDRESS}`, `?q=a%2C${ADDRESS}`],
    ],
    [
      'in form encoding',
      "o'brien@example.net",
      ["o'brien@example.net", "to o'brien@example.net"].map((q) => `?${inForm(q)}`),
    ],
    [
      'in form encoding with a domain in Unicode',
      "o'brien@xn--bcher-kva.example",
      [`?${inForm("o'brien@bücher.example")}`],
    ],
  ] as const) {
    it(`finds the address ${name}, but not within a longer one`, async () => {
      const type = 'chatapp.received';
      const audit = { org_id: ours.id, actor_kind: 'system', actor_id: 'test', action: 'emails.export' } as const;
      const longer = ['x', 'n', 'o%27', 'x+'].map((begin) => `${begin}${address}`);
      for (const text of [...texts, ...longer]) {
        await enqueueEvents(service.pool, [{ org_id: ours.id, type, data: { text } }]);
        await insertAudit(service.pool, { ...audit, target: null, detail: { filters: text } });
      }
      const report = await erase(address);
      const { webhook_events: events, audit_entries: entries } = report;
      assert.deepEqual([events, entries], [texts.length, texts.length]);
      const { rows } = await service.pool.query<{ text: string }>(
        `DELETE FROM webhook_events WHERE type = $1 RETURNING data->>'text' AS text`,
        [type],
      );
      const { rows: logged } = await service.pool.query<{ text: string }>(
        `DELETE FROM audit_log WHERE action = $1 RETURNING detail->>'filters' AS text`,
        [audit.action],
      );
      for (const stored of [rows, logged]) {
        const named = stored.map(({ text }) => text).filter((text) => !text.includes('erased.invalid'));
        assert.deepEqual(named.sort(), longer.sort());
      }
    });
  }

  it('finds the target of an audit entry, however the request wrote it', async () => {
    for (const written of ['Canary%20Person%20%3CCANARY.person@example.net%3E', 'canary.person@example%E3%80%82net']) {
      await ours.call('POST', '/v1/suppressions', { json: { email: ADDRESS } });
      assert.equal((await ours.call('DELETE', `/v1/suppressions/${written}`)).status, 204);
    }
    await erase();
    const { rows } = await service.pool.query(
      `SELECT target FROM audit_log WHERE target ~* 'canary.?person|example.net'`,
    );
    assert.deepEqual(rows, []);
  });

  it('suppresses scheduled and later emails to the address', async () => {
    const provider = new ScriptedProvider();
    const { deliverOne, email } = harness(service.pool, ours.id, [provider], { contents: service.deps.contents });
    const later = await ours.sent({ to: ADDRESS.toUpperCase() });
    const shared = await ours.sent({ to: [ADDRESS, 'c@example.net'] });
    const { rows } = await service.pool.query<{ id: string }>(
      `UPDATE emails SET scheduled_at = now() - interval '1 second' WHERE status = 'scheduled' AND org_id = $1 RETURNING id`,
      [ours.id],
    );
    assert.equal(rows.length, 1);
    for (const id of [later, ...rows.map((row) => row.id)]) {
      assert.deepEqual(await deliverOne({ id, version: 0 }), { id, state: 'ended', status: 'suppressed' });
    }
    await deliverOne({ id: shared, version: 0 });
    assert.equal((await email(shared)).status, 'sent');
    assert.deepEqual(
      provider.given.map(({ to }) => to.map(({ address }) => address)),
      [['c@example.net']],
    );
    const elsewhere = harness(service.pool, theirs.id, [provider], { contents: service.deps.contents });
    const foreign = await theirs.sent({ to: ADDRESS });
    await elsewhere.deliverOne({ id: foreign, version: 0 });
    assert.equal((await elsewhere.email(foreign)).status, 'sent', 'another organization still sends to the address');
  });

  it('accepts null for the cursor', async () => {
    const answer = await ours.call('POST', '/v1/erasures', { json: { email: ADDRESS, cursor: null } });
    assert.equal(answer.status, 200, answer.text);
  });

  it('returns 422 for an invalid address or cursor', async () => {
    for (const [json, param] of [
      [{ email: 'x' }, 'email'],
      [{ email: ADDRESS, cursor: 'x' }, 'cursor'],
    ] as const) {
      assertRefused(await ours.call('POST', '/v1/erasures', { json }), 422, 'validation_error', param);
    }
  });

  it('continues with the cursor of an earlier call', async () => {
    const person = 'other.person@example.net';
    const id = await delivered(ours, { to: person });
    await service.pool.query('UPDATE email_events SET recipient = $2 WHERE email_id = $1 AND recipient IS NOT NULL', [
      id,
      person,
    ]);
    const { next } = await eraseRecipient(service.deps, ours.id, { email: person }, { phase: 'audit_log', after: '' });
    assert.equal(next, null);
    assert.deepEqual((await ours.email(id))['to'], [person], 'this cursor is after the emails');
    const report = await erase(person);
    assert.equal(report['emails'], 1);
  });
});
