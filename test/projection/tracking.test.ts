import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { newId } from '../../src/domain/ids.ts';
import { project } from '../../src/projection/emails.ts';
import { makeTrackingRecorder, type TrackingHit } from '../../src/projection/tracking.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { acceptOne, emailRow, organization, timeline } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase();
const orgId = await organization(pool);
const endpoint = { id: newId('wh', Date.now()), url: 'https://example.com/', description: null, events: [] };
await insertEndpoint(pool, orgId, endpoint, Buffer.from('x'));

/** Seconds since 1970, `ago` seconds ago. */
const at = (ago: number): number => Math.floor(Date.now() / 1_000) - ago;
const LATE = at(3_600);
const SHOP = 'https://shop.example/';

/** A recorder for one email that was sent; `hits` records and writes them. */
async function sentEmail(to = ['Ada@Example.net']) {
  let wakes = 0;
  const warnings: unknown[] = [];
  const log = { warn: (...line: unknown[]) => void warnings.push(line) };
  const recorder = makeTrackingRecorder({ pool, wakeRelay: () => wakes++, log, burstMs: 600_000 });
  const id = await acceptOne(pool, orgId, { to });
  await project(pool, 'sent', [{ id }]);
  const hits = async (...some: Partial<TrackingHit>[]): Promise<void> => {
    for (const hit of some) recorder.record({ emailId: id, recipient: 0, sentAt: LATE, machine: false, ...hit });
    await recorder.settle();
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
    const email = await sentEmail();
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
    other.record({ emailId: email.id, recipient: 1, sentAt: LATE, machine: false });
    await other.settle();
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
    await email.hits({ machine: true }, { machine: true, url: SHOP });
    assert.equal(await email.status(), 'sent');
    assert.deepEqual(await email.events(), ['opened', 'clicked']);
    for (const data of await email.published()) assert.deepEqual([data['machine'], data['status']], [true, 'sent']);
    const { rows } = await pool.query('SELECT FROM email_recipients WHERE email_id = $1', [email.id]);
    assert.deepEqual(rows, []);
  });

  it('does not hide that of a person', async () => {
    const email = await sentEmail();
    await email.hits({ machine: true }, {}, { machine: true });
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
    const hit = { emailId: id, recipient: 0, sentAt: LATE, machine: false };
    recorder.record(hit);
    await recorder.settle();
    assert.equal(warnings.length, 1);
    isAway = false;
    recorder.record(hit);
    await recorder.settle();
    assert.equal((await emailRow(pool, id)).status, 'opened');
  });
});
