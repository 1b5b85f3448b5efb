import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import type { EmailDeps } from '../../src/delivery/email/contract.ts';
import { makeTrack } from '../../src/delivery/email/tracking.ts';
import { makeTrackingTokens } from '../../src/domain/email/tracked-links.ts';
import type { EmailProviderName } from '../../src/domain/email/email.ts';
import type { NewEmail } from '../../src/store/emails/accept.ts';
import { DOMAIN } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { harnessWithProvider } from './harness.ts';

const { pool, orgId } = await organizationFixture(10);
const tokens = makeTrackingTokens(SECRET_KEY);
const HTML =
  '<body><a href="https://shop.example/?a=1&amp;b=2">Shop</a><a href="{{{unsubscribe_url}}}">Stop</a>' +
  '<a href="mailto:hi@acme.example">Write</a></body>';

interface Case extends Partial<NewEmail> {
  readonly opens?: boolean;
  readonly clicks?: boolean;
  readonly provider?: EmailProviderName;
  readonly settings?: Partial<EmailDeps>;
}

/** Delivers an email of a domain with this tracking. @returns what its provider was given */
async function given({ opens = false, clicks = false, provider: name = 'smtp', settings = {}, ...fields }: Case = {}) {
  await pool.query('UPDATE domains SET open_tracking = $1, click_tracking = $2 WHERE name = $3', [
    opens,
    clicks,
    DOMAIN,
  ]);
  const { provider, accept, deliverOne, lines } = harnessWithProvider(pool, orgId, settings, name);
  provider.hasTracking = name === 'postmark';
  const member = await accept({ html: HTML, ...fields });
  await deliverOne(member);
  return { id: member.id, emails: provider.given, html: provider.given[0]?.html ?? '', lines };
}

const clickOf = (html: string) => tokens.readClick(/\/t\/c\/([^"]+)/.exec(html)?.[1] ?? '');
const openOf = (html: string) => tokens.readOpen(/\/t\/o\/([^"]+)/.exec(html)?.[1] ?? '');

describe('an email by a provider without tracking', () => {
  it('stays as it is while its domain has no tracking', async () => {
    const { html, emails } = await given({ text: 'See https://shop.example/' });
    assert.equal(html, HTML);
    assert.equal(emails[0]?.text, 'See https://shop.example/');
  });

  it('gets signed links in place of its own, and nothing else, if clicks are tracked', async () => {
    const { id, html, emails } = await given({ clicks: true, text: 'See https://shop.example/' });
    const { url, emailId, recipient } = clickOf(html) ?? {};
    assert.deepEqual([url, emailId, recipient], ['https://shop.example/?a=1&b=2', id, 0]);
    const restored = html.replace(/https:\/\/mail\.example\/t\/c\/[^"]+/, 'https://shop.example/?a=1&amp;b=2');
    assert.equal(restored, HTML);
    assert.equal(emails[0]?.text, 'See https://shop.example/');
  });

  it('gets signed links in place of the first 1,000 that can be tracked', async () => {
    const link = (n: number) => `<a href="https://shop.example/${n}">`;
    const links = Array.from({ length: 1_002 }, (_, n) => link(n));
    const { html } = await given({ clicks: true, html: `<a href="mailto:hi@acme.example">${links.join('')}` });
    assert.equal(html.match(/\/t\/c\//g)?.length, 1_000);
    assert.ok(html.endsWith(`>${link(1_000)}${link(1_001)}`), html.slice(-200));
  });

  it('gets an image before the end of its body if opens are tracked', async () => {
    const { id, html } = await given({ opens: true });
    assert.deepEqual([openOf(html)?.emailId, openOf(html)?.recipient], [id, 0]);
    assert.match(html, /<img src="https:\/\/mail\.example\/t\/o\/[^"]+" width="1" height="1" alt=""[^>]*><\/body>$/);
    assert.equal(html.replace(/<img [^>]*>/, ''), HTML);
  });

  it('names the position of its only recipient that is not suppressed, and none if it has several', async () => {
    const to = ['tracked-a@example.net', 'tracked-b@example.net'];
    assert.equal(openOf((await given({ opens: true, to })).html)?.recipient, null);
    await pool.query(`INSERT INTO suppressions (id, org_id, email, origin) VALUES ('sup_t', $1, $2, 'manual')`, [
      orgId,
      to[0],
    ]);
    assert.equal(openOf((await given({ opens: true, to })).html)?.recipient, 1);
  });

  it('has links of its own in each copy of a marketing email, but for the unsubscribe link', async () => {
    const to = ['copy-a@example.net', 'copy-b@example.net'];
    const { id, emails } = await given({ opens: true, clicks: true, to, marketing: true });
    assert.equal(emails.length, 2);
    for (const [position, { html, headers, to: mailboxes }] of emails.entries()) {
      assert.ok(html !== null);
      const recipient = to.indexOf(mailboxes[0]?.address ?? '');
      assert.equal(recipient, position);
      assert.ok(html.includes(`<a href="https://mail.example/unsubscribe/${id}.${recipient}">Stop</a>`), html);
      assert.deepEqual([clickOf(html)?.recipient, openOf(html)?.recipient], [recipient, recipient]);
      const list = headers.find(([name]) => name === 'List-Unsubscribe');
      assert.equal(list?.[1], `<https://mail.example/unsubscribe/${id}.${recipient}>`);
    }
  });

  it('has no tracking without HTML', async () => {
    const { emails } = await given({ opens: true, clicks: true, html: null, text: 'See https://shop.example/' });
    assert.deepEqual([emails[0]?.html, emails[0]?.text], [null, 'See https://shop.example/']);
  });

  it('is sent untracked without PUBLIC_URL, and the log names the setting', async () => {
    const lines: string[] = [];
    const track = makeTrack(undefined, SECRET_KEY, pino({}, { write: (line) => void lines.push(line) }));
    const { html } = await given({ opens: true, clicks: true, settings: { track } });
    assert.equal(html, HTML);
    assert.match(lines.join(''), /email sent untracked: PUBLIC_URL is not set/);
  });
});

describe('an email by a provider with tracking of its own', () => {
  it('keeps its HTML, and the provider learns what to track', async () => {
    const { html, emails } = await given({ opens: true, clicks: true, provider: 'postmark' });
    assert.equal(html, HTML);
    assert.deepEqual(emails[0]?.tracking, { opens: true, clicks: true });
  });
});
