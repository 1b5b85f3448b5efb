import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { project } from '../../src/projection/emails.ts';
import { beginAttempts, endAttempts } from '../../src/store/emails/attempts.ts';
import { type Organization, useService } from '../http/service.ts';
import { address, putSuppression } from '../http/suppression-list.ts';
import { eventually } from '../support/eventually.ts';
import { latestAudit, type Person, signedIn, textOf } from './visitor.ts';

const service = await useService();

interface Fixture {
  readonly ours: Organization;
  readonly member: Person;
  readonly html: (id: string) => Promise<string>;
}

async function fixture(): Promise<Fixture> {
  const ours = await service.organization();
  const member = await signedIn(service, ours.id, 'member');
  const html = async (id: string) => {
    const page = await member.get(`/dashboard/emails/${id}`);
    assert.equal(page.status, 200, textOf(page.html));
    return page.html;
  };
  return { ours, member, html };
}

const dialogOf = (html: string) => /<div popover="auto" id="send-again".*?<\/div>/s.exec(html)?.[0] ?? '';

/** Submits the dialog with the button of a label. */
async function resend({ member }: Fixture, id: string, dialog: string, label: string) {
  const fields = [...dialog.matchAll(/name="(\w+)" value="([^"]*)"(?!>Remove)/g)].map(([, name, value]) => [
    name,
    value,
  ]);
  const [, name, value] =
    new RegExp(`<button class="danger"(?: name="(\\w+)" value="(\\w+)")?>${label}<`).exec(dialog) ?? [];
  assert.ok(new RegExp(`<button class="danger"[^>]*>${label}<`).test(dialog), dialog);
  if (name !== undefined) fields.push([name, value]);
  return member.change(`/dashboard/emails/${id}/again`, Object.fromEntries(fields) as Record<string, string>);
}

const latestId = async ({ ours }: Fixture) => {
  const { body } = await ours.call('GET', '/v1/emails?limit=1');
  return (body as { emails: { id: string }[] }).emails[0]?.id ?? '';
};

const listed = async ({ ours }: Fixture, email: string) => {
  const { body } = await ours.call('GET', `/v1/suppressions?email=${encodeURIComponent(email)}`);
  return (body as { suppressions: unknown[] }).suppressions.length;
};

describe('the question before a resend', () => {
  it('names the recipients without an entry on the suppression list by their number only', async () => {
    const { ours, html } = await fixture();
    const dialog = dialogOf(await html(await ours.sent({ to: address() })));
    assert.match(textOf(dialog), /goes to its recipient immediately/);
    assert.doesNotMatch(dialog, /suppress/);
  });

  it('says that a suppressed address gets nothing, and removes the suppression first', async () => {
    const shared = await fixture();
    const { ours, html } = shared;
    const to = address();
    const id = await ours.sent({ to: `Ada <${to.toUpperCase()}>` });
    const entry = await putSuppression(service.pool, ours.id, to, 'bounce');
    const dialog = dialogOf(await html(id));
    assert.ok(
      textOf(dialog).includes(`${to} is on the suppression list, because email to it bounced; it will not be sent.`),
      textOf(dialog),
    );
    assert.doesNotMatch(dialog, />Resend</, 'it would be sent to nobody');
    const shown = await resend(shared, id, dialog, 'Remove suppression and resend');
    assert.match(textOf(shown.html), /Suppressions removed\. This is the new email, which is sent in 30 seconds\./);
    assert.equal(await listed(shared, to), 0);
    assert.equal((await latestAudit(service, 'suppressions.delete'))?.target, entry);
    const made = await latestId(shared);
    assert.deepEqual((await latestAudit(service, 'emails.send'))?.detail, { resend_of: id });
    const { status, scheduled_at: at } = await ours.email(made);
    assert.equal(status, 'scheduled', 'the list of the provider is cleared first');
    assert.ok(Date.parse(String(at)) - Date.now() < 31_000, String(at));
  });

  it('offers a resend to the others too if some are suppressed', async () => {
    const shared = await fixture();
    const { ours, html } = shared;
    const [ada, bob] = [address(), address()];
    const id = await ours.sent({ to: [ada], cc: [bob] });
    await putSuppression(service.pool, ours.id, bob, 'manual');
    const dialog = dialogOf(await html(id));
    assert.match(
      textOf(dialog),
      new RegExp(`${bob} is on the suppression list, because .*; it will not be sent to this`),
    );
    await resend(shared, id, dialog, 'Resend');
    assert.equal(await listed(shared, bob), 1);
    assert.equal((await ours.email(await latestId(shared)))['status'], 'queued');
    await resend(shared, id, dialogOf(await html(id)), 'Remove suppression and resend');
    assert.equal(await listed(shared, bob), 0);
  });

  it('ignores an unsubscription of email that is not marketing, and leaves it on the list', async () => {
    const shared = await fixture();
    const { ours, html } = shared;
    const to = address();
    const id = await ours.sent({ to });
    await putSuppression(service.pool, ours.id, to, 'unsubscribe');
    const dialog = dialogOf(await html(id));
    assert.doesNotMatch(dialog, /suppress/);
    await resend(shared, id, dialog, 'Resend');
    assert.equal(await listed(shared, to), 1);
  });
});

describe('the banner of an email', () => {
  it('shows the response once, and differing responses of attempts too', async () => {
    const { ours, html } = await fixture();
    const to = address();
    const id = await ours.sent({ to });
    const error = '552 5.2.2 <the mailbox is full>';
    const attempts = [1, 2].map((n) => ({ message_id: id, n }));
    await beginAttempts(
      service.pool,
      attempts.map((each) => ({ ...each, call: `call_${id}${each.n}`, provider: 'smtp' })),
    );
    await endAttempts(service.pool, [
      { message_id: id, n: 1, outcome: 'again', detail: '451 4.2.2 try later' },
      { message_id: id, n: 2, outcome: 'refused', detail: error },
    ]);
    await project(service.pool, 'bounced', [{ id, recipient: to, error, bounce_reason: 'mailbox_full' }]);
    const shown = await html(id);
    const text = textOf(shown);
    assert.equal(text.split(error).length - 1, 1, text);
    assert.equal(text.split('over quota').length - 1, 1, text);
    assert.match(shown, /<p id="response"><code>552 5\.2\.2/);
    assert.equal(shown.split('<a href="#response">see the response above</a>').length - 1, 3);
    assert.ok(text.includes('temporary failure, retrying 451 4.2.2 try later'), text);
    assert.match(text, /Recipients .* bounced mailbox full: see the response above/);
  });

  it('shows each response where they differ by recipient', async () => {
    const { ours, html } = await fixture();
    const [ada, bob] = [address(), address()];
    const id = await ours.sent({ to: [ada, bob] });
    for (const [recipient, error] of [
      [ada, '550 no Ada'],
      [bob, '550 no Bob'],
    ] as const) {
      await project(service.pool, 'bounced', [{ id, recipient, error, bounce_reason: 'mailbox_not_found' }]);
    }
    const text = textOf(await html(id));
    for (const part of ['550 no Ada', '550 no Bob']) assert.ok(text.includes(part), text);
  });

  it('links to the error of a rejected email too', async () => {
    const { ours, html } = await fixture();
    const id = await ours.sent({ to: address() });
    await project(service.pool, 'rejected', [{ id, error: '422 no such template' }]);
    const shown = await html(id);
    assert.equal(textOf(shown).split('422 no such template').length - 1, 1, textOf(shown));
    assert.match(shown, /id="response"[^>]*>422 no such template/);
  });

  it('has no link to its own page, and links whose texts name their targets', async () => {
    const { ours, html } = await fixture();
    const to = address();
    const id = await ours.sent({ to });
    await project(service.pool, 'delivered', [{ id, recipient: to }]);
    await project(service.pool, 'complained', [{ id, recipient: to }]);
    const remedyOf = async (of: string) => /<div class="notice warning remedy">.*?<h2/s.exec(await html(of))?.[0] ?? '';
    const own = await remedyOf(id);
    assert.ok(
      own.includes(`href="/dashboard/suppressions?email=${encodeURIComponent(to)}">Entry on the suppression list<`),
      own,
    );
    assert.ok(!own.includes(`<a href="/dashboard/emails/${id}"`), own);
    const other = await remedyOf(await ours.sent({ to }));
    assert.ok(other.includes(`<a href="/dashboard/emails/${id}">Email that caused it<`), other);
  });

  it('returns to the email after a removal, and never to another site', async () => {
    const { ours, member, html } = await fixture();
    const to = address();
    const id = await ours.sent({ to });
    const entry = await putSuppression(service.pool, ours.id, to, 'manual');
    const [, next] =
      new RegExp(`/suppressions/${entry}/remove".*?name="next" value="([^"]+)"`, 's').exec(await html(id)) ?? [];
    assert.equal(next, `/dashboard/emails/${id}`);
    const shown = await member.change(`/dashboard/suppressions/${entry}/remove`, { next });
    assert.match(textOf(shown.html), /Resend … .* was removed from the suppression list\./);
    for (const [wanted, reached] of [
      ['https://evil.example/', '/dashboard'],
      ['//evil.example/dashboard', '/dashboard'],
      ['', '/dashboard/suppressions'],
    ] as const) {
      const again = await putSuppression(service.pool, ours.id, to, 'manual');
      const { location } = await member.post(`/dashboard/suppressions/${again}/remove`, { next: wanted });
      assert.equal(location, reached, wanted);
    }
  });
});

describe('the filters of a link with an instant', () => {
  it('show it as the local date and time, which mean the same instant', async () => {
    const { ours, member } = await fixture();
    const id = await ours.sent();
    await service.pool.query(`UPDATE emails SET created_at = '2026-11-28T07:00Z' WHERE id = $1`, [id]);
    await member.change('/dashboard/account/time-zone', { time_zone: 'Europe/Berlin' });
    const found = async (query: string) => {
      const { status, html } = await member.get(`/dashboard/emails?${query}`);
      assert.equal(status, 200, query);
      return { html, isListed: html.includes(`/dashboard/emails/${id}"`) };
    };
    const { html, isListed } = await found(
      'created_after=2026-11-28T07%3A00%3A00.000Z&created_before=2026-11-28T08%3A00%3A00.000Z',
    );
    assert.ok(isListed);
    for (const [name, value] of [
      ['created_after', '2026-11-28T08:00'],
      ['created_before', '2026-11-28T09:00'],
    ]) {
      assert.match(html, new RegExp(`<input type="datetime-local" value="${value}" id="field-${name}"`));
    }
    assert.ok((await found('created_after=2026-11-28T08%3A00')).isListed, 'as the field sends it');
    assert.ok(!(await found('created_after=2026-11-28T08%3A01')).isListed);
    const exact = await found('created_after=2026-11-28T07%3A00%3A00.250Z');
    assert.match(exact.html, /type="datetime-local" value="2026-11-28T08:00:00\.250"/);
    // Clocks are put back: this local time means an earlier instant.
    const twice = await found('created_after=2026-10-25T01%3A30%3A00.000Z');
    assert.match(twice.html, /<input type="text" value="2026-10-25T01:30:00\.000Z"/);
  });
});

describe('the page of an email that changes meanwhile', () => {
  it('shows status, timeline and recipients of one instant', async () => {
    const { ours, html } = await fixture();
    const to = address();
    const id = await ours.sent({ to });
    const writer = await service.pool.connect();
    try {
      await writer.query('BEGIN');
      // The page reads the email first, and then waits for its recipients.
      await writer.query('LOCK TABLE email_recipients IN ACCESS EXCLUSIVE MODE');
      const shown = html(id);
      await eventually('the page waits', async () => {
        const { rows } = await service.pool.query(
          `SELECT FROM pg_locks WHERE NOT granted AND relation = 'email_recipients'::regclass
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        );
        return rows.length > 0;
      });
      await writer.query(`UPDATE emails SET status = 'delivered' WHERE id = $1`, [id]);
      await writer.query(
        `INSERT INTO email_events (email_id, id, type, created_at, dedupe_key) VALUES ($1, 'evt_now', 'email.delivered', now(), 'now')`,
        [id],
      );
      await writer.query('COMMIT');
      const text = textOf(await shown);
      assert.match(text, /Status queued /);
      assert.doesNotMatch(text, /delivered/i);
    } finally {
      writer.release();
    }
    assert.match(textOf(await html(id)), /Status delivered .* Delivered/);
  });
});
