import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import { project } from '../../src/projection/emails.ts';
import { makeTrackingRecorder, type TrackingHit } from '../../src/projection/tracking.ts';
import { endCopies, prepareCopies } from '../../src/store/emails/recipients.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { acceptOne, emailRow, organization, timeline } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase();
const orgId = await organization(pool);
const endpoint = { id: newId('wh'), url: 'https://example.com/', description: null, events: [] };
await insertEndpoint(pool, orgId, endpoint, Buffer.from('x'));

/** Seconds since 1970, `ago` seconds ago. */
const at = (ago: number): number => Math.floor(Date.now() / 1_000) - ago;
const AN_HOUR_AGO = at(3_600);
const SHOP = 'https://shop.example/';

/** A recorder for one email that was sent; `hits` records and writes them. */
async function sentEmail(to = ['Ada@Example.net']) {
  const email = await queuedEmail({ to });
  await project(pool, 'sent', [{ id: email.id }]);
  return email;
}

/** The same for one that is still queued. */
async function queuedEmail(fields: Parameters<typeof acceptOne>[2] = { to: ['Ada@Example.net'] }) {
  let wakes = 0;
  const warnings: unknown[] = [];
  const log = { warn: (...line: unknown[]) => void warnings.push(line) };
  const recorder = makeTrackingRecorder({ pool, wakeRelay: () => wakes++, log, burstMs: 600_000 });
  const id = await acceptOne(pool, orgId, fields);
  const hits = async (...some: Partial<TrackingHit>[]): Promise<void> => {
    for (const hit of some)
      recorder.record({ emailId: id, recipient: 0, sentAt: AN_HOUR_AGO, isByMachine: false, ...hit });
    await recorder.flush();
  };
  const events = async (): Promise<string[]> =>
    (await timeline(pool, id)).filter((type) => /opened|clicked/.test(type));
  /** The data of the webhook events about opens and clicks. */
  const published = async (): Promise<Record<string, unknown>[]> => {
    const { rows } = await pool.query<{ data: Record<string, unknown> }>(
      `SELECT data FROM webhook_events WHERE message_id = $1 AND type IN ('email.opened', 'email.clicked') ORDER BY created_at, id`,
      [id],
    );
    return rows.map(({ data }) => data);
  };
  return {
    id,
    hits,
    events,
    published,
    warnings,
    wakes: () => wakes,
    status: async () => (await emailRow(pool, id)).status,
  };
}

describe('an open or click of a person', () => {
  it('moves the email and its recipient, is published, and wakes the relay', async () => {
    const email = await sentEmail(['Ada@Example.net', 'bea@example.net']);
    await email.hits({});
    assert.equal(await email.status(), 'opened');
    await email.hits({ url: SHOP });
    assert.equal(await email.status(), 'clicked');
    assert.deepEqual(await email.events(), ['opened', 'clicked']);
    const [open, click] = await email.published();
    assert.deepEqual(
      [open?.['status'], open?.['recipient'], open?.['machine']],
      ['opened', 'ada@example.net', undefined],
    );
    const target: unknown = click?.['click'];
    assert.deepEqual(target, { link: SHOP });
    assert.equal(click?.['status'], 'clicked');
    assert.ok(email.wakes() > 0);
    const { rows } = await pool.query('SELECT recipient, status FROM email_recipients WHERE email_id = $1', [email.id]);
    assert.deepEqual(rows, [{ recipient: 'ada@example.net', status: 'clicked' }]);
  });

  it('is recorded once for each recipient and link', async () => {
    const email = await sentEmail(['a@example.net', 'b@example.net']);
    await email.hits({}, {}, { url: SHOP }, { url: SHOP }, { url: `${SHOP}b` }, { recipient: 1 });
    // Another process does not remember what this one has recorded.
    const other = makeTrackingRecorder({
      pool,
      wakeRelay: () => undefined,
      log: { warn: (line: unknown) => assert.fail(String(line)) },
    });
    other.record({ emailId: email.id, recipient: 1, sentAt: AN_HOUR_AGO, isByMachine: false });
    await other.flush();
    assert.deepEqual((await email.events()).sort(), ['clicked', 'clicked', 'opened', 'opened']);
  });

  it('of an email to several recipients names none of them', async () => {
    const email = await sentEmail(['a@example.net', 'b@example.net']);
    await email.hits({ recipient: null });
    assert.equal(await email.status(), 'opened');
    assert.deepEqual(
      (await email.published()).map((data) => 'recipient' in data),
      [false],
    );
  });
});

describe('an open or click of a machine', () => {
  it('is recorded and published as such, and moves neither the email nor its recipient', async () => {
    const email = await sentEmail();
    await email.hits({ isByMachine: true }, { isByMachine: true, url: SHOP });
    assert.equal(await email.status(), 'sent');
    assert.deepEqual(await email.events(), ['opened', 'clicked']);
    for (const data of await email.published()) assert.deepEqual([data['machine'], data['status']], [true, 'sent']);
    const { rows } = await pool.query('SELECT FROM email_recipients WHERE email_id = $1', [email.id]);
    assert.deepEqual(rows, []);
  });

  it('does not hide that of a person', async () => {
    const email = await sentEmail();
    await email.hits({ isByMachine: true }, {}, { isByMachine: true });
    assert.equal(await email.status(), 'opened');
    assert.deepEqual(await email.events(), ['opened', 'opened']);
  });

  it('is one of several clicks in a burst just after the email was sent, as is an open in it', async () => {
    const email = await sentEmail();
    await email.hits({ sentAt: at(2) }, { sentAt: at(2), url: SHOP }, { sentAt: at(2), url: `${SHOP}b` });
    assert.equal(await email.status(), 'sent');
    assert.deepEqual(
      (await email.published()).map((data) => data['machine']),
      [true, true, true],
    );
  });

  it('is not a single click just after the email was sent, nor several clicks later', async () => {
    const early = await sentEmail();
    await early.hits({ sentAt: at(2) }, { sentAt: at(2), url: SHOP });
    assert.equal(await early.status(), 'clicked');
    const late = await sentEmail();
    await late.hits({ url: SHOP }, { url: `${SHOP}b` });
    assert.deepEqual(
      (await late.published()).map((data) => data['machine']),
      [undefined, undefined],
    );
  });
});

describe('an open or click before a server has accepted the email', () => {
  const attempt = (id: string, n: number, outcome: string | null) =>
    pool.query(`INSERT INTO attempts (message_id, n, call, provider, outcome) VALUES ($1, $2, 'call', 'smtp', $3)`, [
      id,
      n,
      outcome,
    ]);

  for (const outcome of ['again', null]) {
    it(`leaves the email to be sent and counts as automatic (outcome of its attempt: ${outcome})`, async () => {
      const email = await queuedEmail();
      await attempt(email.id, 1, outcome);
      await email.hits({}, { url: SHOP });
      assert.equal(await email.status(), 'queued');
      assert.deepEqual(
        (await email.published()).map((data) => data['machine']),
        [true, true],
      );
      const { rows } = await pool.query('SELECT FROM email_recipients WHERE email_id = $1', [email.id]);
      assert.deepEqual(rows, []);
      // It does not hide the open of a person.
      await project(pool, 'sent', [{ id: email.id }]);
      await email.hits({});
      assert.equal(await email.status(), 'opened');
    });
  }

  it('leaves a copy of a marketing email to be sent; that of an accepted copy counts', async () => {
    const to = ['a@example.net', 'b@example.net', 'c@example.net'];
    const email = await queuedEmail({ to, marketing: true });
    await prepareCopies(
      pool,
      to.map((recipient) => ({ email_id: email.id, recipient, suppressed: false })),
    );
    const taken = { email_id: email.id, recipient: 'b@example.net', error: null, provider_message_id: '1' };
    await endCopies(pool, [{ ...taken, status: 'sent' }]);
    const copies = async () => {
      const { rows } = await pool.query<{ status: string }>(
        'SELECT status FROM email_recipients WHERE email_id = $1 ORDER BY recipient',
        [email.id],
      );
      return rows.map(({ status }) => status);
    };
    await email.hits({ recipient: 0 });
    assert.deepEqual([await email.status(), await copies()], ['queued', ['queued', 'sent', 'queued']]);
    await email.hits({ recipient: 1 });
    assert.deepEqual([await email.status(), await copies()], ['opened', ['queued', 'opened', 'queued']]);
    await email.hits({ recipient: 2 });
    assert.deepEqual(await copies(), ['queued', 'opened', 'queued']);
  });

  it('leaves an email that was refused at each attempt failed; one that may have been accepted is corrected', async () => {
    for (const [outcome, status] of [
      ['again', 'failed'],
      ['unknown', 'opened'],
    ] as const) {
      const email = await queuedEmail();
      await attempt(email.id, 1, outcome);
      await project(pool, 'failed', [{ id: email.id, error: 'Given up.' }]);
      await email.hits({});
      assert.equal(await email.status(), status);
    }
  });
});

describe('recording', () => {
  it('ignores emails that do not exist', async () => {
    const email = await sentEmail();
    await email.hits({ emailId: newId('em', 1) }, {});
    assert.equal(await email.status(), 'opened');
    assert.deepEqual(email.warnings, []);
  });

  it('logs what it could not write, and writes it when it is requested again', async () => {
    const id = await acceptOne(pool, orgId);
    await project(pool, 'sent', [{ id }]);
    let isAway = true;
    const away = new Proxy(pool, {
      get: (target, name) => {
        if (isAway) throw new Error('no database');
        return Reflect.get(target, name) as unknown;
      },
    });
    const warnings: unknown[] = [];
    const recorder = makeTrackingRecorder({
      pool: away,
      wakeRelay: () => undefined,
      log: { warn: (...line: unknown[]) => void warnings.push(line) },
    });
    const hit = { emailId: id, recipient: 0, sentAt: AN_HOUR_AGO, isByMachine: false };
    recorder.record(hit);
    await recorder.flush();
    assert.equal(warnings.length, 1);
    isAway = false;
    recorder.record(hit);
    await recorder.flush();
    assert.equal((await emailRow(pool, id)).status, 'opened');
  });
});
