import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Feedback, FeedbackChange } from '../../src/domain/email/feedback.ts';
import { groupBy } from '../../src/lib/group.ts';
import { project } from '../../src/projection/emails.ts';
import { projectFeedback } from '../../src/projection/feedback.ts';
import type { NewEmail } from '../../src/store/emails/accept.ts';
import { TIMELINE_OF } from '../../src/store/emails/emails.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { accept, acceptOne, emailRow, newEmail, organization, timeline } from '../store/mail.ts';

const { pool } = await useDatabase(20);
const orgId = await organization(pool);

/** In ascending order: decisions 3.5. */
const RANKED = ['sent', 'delivery_delayed', 'delivered', 'opened', 'clicked', 'bounced', 'complained'] as const;
type Ranked = (typeof RANKED)[number];

/** Every permutation of every subset, except the empty one. */
function ordersOf<T>(items: readonly T[]): T[][] {
  return items.flatMap((item, i) => {
    const rest = ordersOf(items.filter((_, j) => j !== i));
    return [[item], ...rest.map((order) => [item, ...order])];
  });
}

const report = (
  emailId: string,
  change: FeedbackChange,
  recipient: string,
  fields: Partial<Feedback> = {},
): Feedback => ({
  emailId,
  change,
  recipient,
  dedupeKey: `${change} ${recipient}`,
  ...(change === 'bounced' && { error: '552 5.2.2 full', bounceReason: 'mailbox_full' }),
  ...fields,
});

/** An email to several recipients, each of which has a state of its own. */
const toSeveral = () => {
  const email = newEmail();
  return { ...email, to: [...email.to, `other-${email.id}@example.net`] };
};

/** Makes one step of many emails: what their providers report, and our own record of the hand-over. */
async function step(changes: readonly { id: string; change: Ranked; recipient: string }[]): Promise<void> {
  const handedOver = changes.filter(({ change }) => change === 'sent');
  await transaction(pool, (client) =>
    project(
      client,
      'sent',
      handedOver.map(({ id }) => ({ id, dedupe_key: 'sent' })),
    ),
  );
  await projectFeedback(
    pool,
    changes.flatMap(({ id, change, recipient }) => (change === 'sent' ? [] : report(id, change, recipient))),
  );
}

const highest = (changes: readonly Ranked[]): string =>
  RANKED.findLast((each) => changes.includes(each)) ?? assert.fail('nothing happened');

describe('decisions 3.5: what is reported, in any order and repeated', () => {
  test('leads to the same status, timeline and recipient', async () => {
    const emails = ordersOf(RANKED)
      .filter(({ length }) => length <= 3)
      .map((order) => ({ order, email: toSeveral() }));
    await accept(
      pool,
      orgId,
      emails.map(({ email }) => email),
    );
    for (let i = 0; i < 3; i++) {
      // Each report is repeated in the next step.
      const changes = emails.flatMap(({ email: { id, to }, order }) =>
        order.slice(Math.max(0, i - 1), i + 1).map((change) => ({ id, recipient: to[0] as string, change })),
      );
      await step(changes);
    }
    const { rows } = await pool.query<{ id: string; status: string; types: string[]; recipients: string[] | null }>(
      `SELECT id, status, (SELECT array_agg(replace(type, 'email.', '')) FROM ${TIMELINE_OF('emails')} AS event) AS types,
              (SELECT array_agg(status) FROM email_recipients WHERE email_id = emails.id) AS recipients
       FROM emails WHERE id = ANY ($1)`,
      [emails.map(({ email }) => email.id)],
    );
    const found = new Map(rows.map((row) => [row.id, row]));
    for (const { email, order } of emails) {
      const { status, types, recipients } = found.get(email.id) ?? assert.fail('no row');
      assert.equal(status, highest(order), order.join(' '));
      assert.deepEqual(types.toSorted(), ['queued', ...order].toSorted(), order.join(' '));
      const reported = order.filter((change) => change !== 'sent');
      assert.deepEqual(recipients ?? [], reported.length > 0 ? [highest(reported)] : [], order.join(' '));
    }
  });

  test('of two recipients the higher status is that of the email, and each keeps its own', async () => {
    const orders = ordersOf([0, 1, 2, 3]).filter(({ length }) => length === 4);
    for (const order of orders) {
      const to = [`a-${orders.indexOf(order)}@example.net`, `b-${orders.indexOf(order)}@example.net`] as const;
      const id = await acceptOne(pool, orgId, { to: [...to] });
      const reports = [
        report(id, 'delivered', to[0].toUpperCase()),
        report(id, 'opened', to[0]),
        report(id, 'delivery_delayed', to[1]),
        report(id, 'bounced', to[1]),
      ];
      for (const index of order) await projectFeedback(pool, [reports[index] as Feedback]);
      const { status, bounce_reason, error } = await emailRow(pool, id);
      assert.deepEqual([status, bounce_reason, error], ['bounced', 'mailbox_full', '552 5.2.2 full']);
      const { rows } = await pool.query<{ recipient: string; status: string }>(
        'SELECT recipient, status FROM email_recipients WHERE email_id = $1 ORDER BY 1',
        [id],
      );
      assert.deepEqual(
        rows.map((row) => [row.recipient, row.status]),
        [
          [to[0], 'opened'],
          [to[1], 'bounced'],
        ],
      );
    }
  });

  test('in one call is the same', async () => {
    const members = Array.from({ length: 20 }, toSeveral);
    await accept(pool, orgId, members);
    const all = members.flatMap(({ id, to: [recipient] }) =>
      (['clicked', 'bounced', 'delivered', 'clicked', 'opened'] as const).map((change) =>
        report(id, change, recipient as string),
      ),
    );
    await Promise.all([
      projectFeedback(pool, all),
      projectFeedback(pool, all.toReversed()),
      projectFeedback(pool, all),
    ]);
    for (const { id } of members) {
      assert.equal((await emailRow(pool, id)).status, 'bounced');
      assert.deepEqual((await timeline(pool, id)).toSorted(), ['bounced', 'clicked', 'delivered', 'opened', 'queued']);
      const { rows } = await pool.query(`SELECT status FROM email_recipients WHERE email_id = $1`, [id]);
      assert.deepEqual(rows, [{ status: 'bounced' }]);
    }
  });

  test('about the only recipient is the state of the email, which needs no row of its own', async () => {
    const [id, marketing] = [await acceptOne(pool, orgId), await acceptOne(pool, orgId, { marketing: true })];
    for (const each of [id, marketing]) {
      await projectFeedback(pool, [
        report(each, 'delivered', 'a@example.net'),
        report(each, 'bounced', 'a@example.net'),
      ]);
      const { status, bounce_reason, error } = await emailRow(pool, each);
      assert.deepEqual([status, bounce_reason, error], ['bounced', 'mailbox_full', '552 5.2.2 full']);
    }
    const { rows } = await pool.query('SELECT email_id, status FROM email_recipients WHERE email_id = ANY ($1)', [
      [id, marketing],
    ]);
    assert.deepEqual(rows, [{ email_id: marketing, status: 'bounced' }], 'a copy has one');
  });

  test('in one call is entered in the order of the reports', async () => {
    const changes = ['delivery_delayed', 'delivered', 'opened', 'clicked', 'bounced', 'complained'] as const;
    const emails = Array.from({ length: 20 }, () => newEmail());
    await accept(pool, orgId, emails);
    await projectFeedback(
      pool,
      changes.flatMap((change) => emails.map(({ id, to: [recipient] }) => report(id, change, recipient as string))),
    );
    for (const { id } of emails) {
      assert.deepEqual(await timeline(pool, id), ['queued', ...changes]);
      const { rows } = await pool.query(
        `SELECT last_event_at = (SELECT max(created_at) FROM email_events WHERE email_id = emails.id) AS fits
         FROM emails WHERE id = $1`,
        [id],
      );
      assert.deepEqual(rows, [{ fits: true }]);
    }
  });
});

describe('the effect of a report', () => {
  /** The suppressions of an organization as `email origin reason`. */
  const suppressions = async (org = orgId) => {
    const { rows } = await pool.query<{ text: string }>(
      `SELECT concat_ws(' ', email, origin, reason) AS text FROM suppressions WHERE org_id = $1 ORDER BY created_at, id`,
      [org],
    );
    return rows.map(({ text }) => text);
  };

  test('is the suppression list if the reason requires it, a complaint and an unsubscribe too', async () => {
    const org = await organization(pool, 'feedback.example');
    const from = { from: 'x@feedback.example', from_domain: 'feedback.example' };
    const reports: [FeedbackChange, Partial<Feedback>][] = [
      ['bounced', { bounceReason: 'mailbox_full', error: 'full' }],
      ['bounced', { bounceReason: 'unknown', error: 'no' }],
      ['bounced', { bounceReason: 'provider_suppressed', error: 'no' }],
      ['complained', {}],
      ['unsubscribed', {}],
      ['delivered', {}],
    ];
    for (const [i, [change, fields]] of reports.entries()) {
      const recipient = `P${i}@example.net`;
      const id = await acceptOne(pool, org, { to: [recipient], ...from });
      await projectFeedback(pool, [report(id, change, recipient, fields)]);
    }
    assert.deepEqual(await suppressions(org), [
      'p1@example.net bounce unknown',
      'p2@example.net provider provider_suppressed',
      'p3@example.net complaint',
      'p4@example.net unsubscribe',
    ]);
  });

  test('has the first of several reasons that are reported in one call', async () => {
    const org = await organization(pool, 'reasons.example');
    const emails = Array.from({ length: 20 }, () =>
      newEmail({ from: 'x@reasons.example', from_domain: 'reasons.example' }),
    );
    await accept(pool, org, emails);
    const reasons = [['bounced', { bounceReason: 'unknown', error: 'no' }] as const, ['complained', {}] as const];
    await projectFeedback(
      pool,
      reasons.flatMap(([change, fields]) => emails.map(({ id, to: [to] }) => report(id, change, to as string, fields))),
    );
    const origins = (await suppressions(org)).map((text) => text.split(' ')[1]);
    assert.deepEqual(
      origins,
      emails.map(() => 'bounce'),
    );
  });

  test('blocks only marketing email if the provider’s own list refused a marketing email', async () => {
    const org = await organization(pool, 'news.example');
    const email = { from: 'x@news.example', from_domain: 'news.example', marketing: true };
    for (const bounceReason of ['provider_suppressed', 'mailbox_not_found'] as const) {
      const recipient = `${bounceReason}@example.net`;
      const id = await acceptOne(pool, org, { to: [recipient], ...email });
      await projectFeedback(pool, [report(id, 'bounced', recipient, { bounceReason, error: 'no' })]);
    }
    assert.deepEqual(await suppressions(org), [
      'provider_suppressed@example.net unsubscribe provider_suppressed',
      'mailbox_not_found@example.net bounce mailbox_not_found',
    ]);
  });

  test('of an email that was given up is recorded too', async () => {
    const org = await organization(pool, 'fails.example');
    await pool.query(
      `INSERT INTO webhook_endpoints (id, org_id, url, events, secret) VALUES ('wh_fails', $1, 'https://x.example', '{email.failed}', '\\x00')`,
      [org],
    );
    const id = await acceptOne(pool, org, { from: 'x@fails.example', from_domain: 'fails.example' });
    await transaction(pool, (client) => project(client, 'failed', [{ id, error: 'Given up after 16 attempts.' }]));
    const { rows } = await pool.query<{ type: string; data: unknown }>(
      `SELECT event.type, data FROM webhook_deliveries JOIN webhook_events AS event ON event.id = event_id WHERE endpoint_id = 'wh_fails'`,
    );
    assert.deepEqual(rows, [
      { type: 'email.failed', data: { status: 'failed', error: 'Given up after 16 attempts.' } },
    ]);
  });

  test('is ignored for an email that does not exist', async () => {
    await projectFeedback(pool, [report('em_00000000000000000000000000', 'bounced', 'nobody@example.net')]);
    await projectFeedback(pool, []);
    assert.ok(!(await suppressions()).some((text) => text.startsWith('nobody@')));
  });

  test('is an event for each endpoint that subscribes to it', async () => {
    const org = await organization(pool, 'listens.example');
    const from = { from: 'x@listens.example', from_domain: 'listens.example' };
    const endpoint = async (id: string, events: string[], status = 'enabled', of = org) =>
      pool.query(
        `INSERT INTO webhook_endpoints (id, org_id, url, events, status, secret) VALUES ($1, $2, 'https://x.example', $3, $4, '\\x00')`,
        [id, of, events, status],
      );
    await endpoint('wh_all', []);
    await endpoint('wh_some', ['email.bounced', 'suppression.added']);
    await endpoint('wh_disabled', [], 'disabled');
    await endpoint('wh_other', [], 'enabled', orgId);
    const id = await acceptOne(pool, org, { to: ['e@example.net'], ...from });
    const bounce = report(id, 'bounced', 'E@example.net', { bounceReason: 'mailbox_inactive', error: 'gone' });
    await projectFeedback(pool, [
      bounce,
      bounce,
      report(id, 'clicked', 'e@example.net', { link: 'https://l.example' }),
    ]);
    const { rows } = await pool.query<{ endpoint_id: string; type: string; data: unknown; message_id: string | null }>(
      `SELECT endpoint_id, event.type, data, message_id FROM webhook_deliveries AS delivery JOIN webhook_events AS event ON event.id = event_id
       WHERE event.org_id = $1`,
      [org],
    );
    const events = groupBy(rows, ({ endpoint_id }) => endpoint_id);
    assert.deepEqual([...events.keys()].toSorted(), ['wh_all', 'wh_some']);
    const typesOf = (endpoint: string) =>
      events
        .get(endpoint)
        ?.map(({ type }) => type)
        .toSorted();
    const all = ['email.bounced', 'email.clicked', 'email.queued', 'suppression.added'];
    assert.deepEqual(typesOf('wh_all'), all);
    assert.deepEqual(typesOf('wh_some'), ['email.bounced', 'suppression.added']);
    const data = (type: string) => rows.find((row) => row.endpoint_id === 'wh_all' && row.type === type);
    assert.deepEqual(data('email.bounced'), {
      endpoint_id: 'wh_all',
      type: 'email.bounced',
      data: { status: 'bounced', recipient: 'e@example.net', error: 'gone', bounceReason: 'mailbox_inactive' },
      message_id: id,
    });
    assert.deepEqual(data('email.clicked')?.data, {
      status: 'bounced',
      recipient: 'e@example.net',
      click: { link: 'https://l.example' },
    });
    assert.deepEqual(data('email.queued')?.data, { status: 'queued' });
    const { rows: details } = await pool.query<{ type: string; detail: unknown }>(
      'SELECT type, detail FROM email_events WHERE email_id = $1 ORDER BY type',
      [id],
    );
    assert.deepEqual(details, [
      { type: 'email.bounced', detail: { error: 'gone', bounce_reason: 'mailbox_inactive' } },
      { type: 'email.clicked', detail: { link: 'https://l.example' } },
      { type: 'email.queued', detail: null },
    ]);
  });

  test('stores no acceptance, id and only recipient in the timeline of an email without endpoints', async () => {
    const rowsOf = async (domain: string, isPublished: boolean, fields: Partial<NewEmail> = {}) => {
      const org = await organization(pool, domain);
      if (isPublished)
        await pool.query(
          `INSERT INTO webhook_endpoints (id, org_id, url, events, secret) VALUES ($1, $1, 'https://x.example', '{}', '\\x00')`,
          [org],
        );
      const email = newEmail({ to: ['e@example.net'], from: `x@${domain}`, from_domain: domain, ...fields });
      await accept(pool, org, [email]);
      await projectFeedback(pool, [
        report(email.id, 'delivered', 'e@example.net'),
        report(email.id, 'opened', 'e@example.net'),
      ]);
      assert.deepEqual(await timeline(pool, email.id), ['queued', 'delivered', 'opened']);
      const { rows } = await pool.query<{ type: string; named: string }>(
        `SELECT type, concat_ws(' ', CASE WHEN event.id IS NOT NULL THEN 'id' END, recipient) AS named,
                lag(event.created_at, 1, emails.created_at) OVER (ORDER BY event.created_at) < event.created_at AS is_later
         FROM email_events AS event JOIN emails ON emails.id = email_id
         WHERE email_id = $1 AND type <> 'email.queued' ORDER BY event.created_at`,
        [email.id],
      );
      const { rowCount } = await pool.query(
        `SELECT FROM email_events WHERE email_id = $1 AND type = 'email.queued' AND id IS NOT NULL`,
        [email.id],
      );
      return { accepted: rowCount, rows };
    };
    const rows = (named: string) =>
      ['email.delivered', 'email.opened'].map((type) => ({ type, named, is_later: true }));
    assert.deepEqual(await rowsOf('quiet.example', false), { accepted: 0, rows: rows('') });
    assert.deepEqual(await rowsOf('published.example', true), { accepted: 1, rows: rows('id') });
    assert.deepEqual(await rowsOf('several.example', false, { cc: ['c@example.net'] }), {
      accepted: 0,
      rows: rows('e@example.net'),
    });
  });
});
