import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { PAGES } from '../../src/dashboard/app.ts';
import { createSession } from '../../src/accounts/sign-in.ts';
import { digest } from '../../src/lib/digest.ts';
import { RIGHTS } from '../../src/dashboard/roles.tsx';
import { invite } from '../../src/accounts/invitations.ts';
import { ROLES, type Role } from '../../src/store/accounts/users.ts';
import { inFuture } from '../http/service.ts';
import { signedIn, TEST_BROWSER, textOf, type Visitor, visitor } from './visitor.ts';
import { useServiceWithIssuer } from './with-issuer.ts';

// Some pages exist only with an identity provider.
const { service } = await useServiceWithIssuer();
const ours = await service.organization('Ours');
const theirs = await service.organization('Theirs');
const [viewer, member, owner] = [
  await signedIn(service, ours.id, 'viewer'),
  await signedIn(service, ours.id, 'member'),
  await signedIn(service, ours.id, 'owner'),
];
const people = { viewer, member, owner };
const outsider = await signedIn(service, theirs.id, 'owner');

/** Objects of the organization `ours` for the parameters of paths with these prefixes. Every page with parameters needs one. */
const FIXTURES: Readonly<Record<string, () => Promise<Record<string, string>>>> = {
  '/dashboard/members/invitations/:id': async () => {
    const { id } = await invite(service.pool, ours.id, 'invited@example.com', 'member');
    return { id };
  },
  '/dashboard/domains/:id': async () => ({ id: await ours.addDomain(`d${++count}.example.com`, false) }),
  '/dashboard/keys/:id': async () => {
    const { body } = await ours.call('POST', '/v1/keys', { json: { preset: 'read_only' } });
    return { id: (body as { id: string }).id };
  },
  '/dashboard/numbers/:id': async () => {
    const number = `+1202555${1_000 + ++count}`;
    const { body } = await ours.call('POST', '/v1/chatapp/numbers', {
      json: { number, provider: 'twilio', auth_token: 'token' },
    });
    return { id: (body as { id: string }).id };
  },
  '/dashboard/suppressions/:id': async () => {
    const { body } = await ours.call('POST', '/v1/suppressions', { json: { email: 'listed@example.com' } });
    return { id: (body as { id: string }).id };
  },
  '/dashboard/webhooks/:id/deliveries/:deliveryId': async () => {
    const { id } = await endpoint();
    const { body } = await ours.call('POST', `/v1/webhooks/${id}/test`);
    return { id, deliveryId: (body as { id: string }).id };
  },
  '/dashboard/webhooks/:id': () => endpoint(),
  '/dashboard/emails/:id': async () => ({
    // The page of its HTML shows only this text.
    id: await ours.sent({ html: '<p>Ours</p>', scheduled_at: inFuture({ hours: 1 }) }),
  }),
  '/dashboard/batches/:id': async () => {
    const { body } = await ours.call('POST', '/v1/emails/batch', { json: { emails: [ours.mail()] } });
    return { id: (body as { id: string }).id };
  },
  '/dashboard/chatapp/:id': async () => {
    const from = '+12025550142';
    await ours.call('POST', '/v1/chatapp/numbers', { json: { number: from, provider: 'twilio', auth_token: 'token' } });
    const json = { from, to: '+14165550123', text: 'Hi.', scheduled_at: inFuture({ hours: 1 }) };
    const { body } = await ours.call('POST', '/v1/chatapp', { json });
    return { id: (body as { id: string }).id };
  },
  '/dashboard/sms/:id': async () => {
    await ours.addSender('+12025550143').catch(() => undefined);
    const json = { to: '+14165550123', text: 'Hi.', scheduled_at: inFuture({ hours: 1 }) };
    const { body } = await ours.call('POST', '/v1/sms', { json });
    return { id: (body as { id: string }).id };
  },
  '/dashboard/account/sessions/:id': async () => {
    const token = await createSession(service.pool, people.owner.id, TEST_BROWSER);
    return { id: createHash('sha256').update(digest(token)).digest('hex') };
  },
  '/dashboard/members/:id': async () => ({ id: people.viewer.id }),
};

/** Pages of a user's own account, which every role may change. */
const OWN_ACCOUNT = /^\/dashboard\/(?:account|organization)(?:\/|$)/;

let count = 0;

async function endpoint(): Promise<{ id: string }> {
  const { body } = await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
  return { id: (body as { id: string }).id };
}

const RESCHEDULED = { scheduled_at: inFuture({ hours: 2 }).slice(0, 16), time_zone: 'UTC' };

/** Valid fields of forms. */
const FIELDS: Readonly<Record<string, Record<string, string>>> = {
  '/dashboard/members/:id/role': { role: 'owner' },
  '/dashboard/webhooks/:id/edit': { url: 'https://example.com/other' },
  '/dashboard/webhooks/:id/replay': { since: '2026-01-01T00:00' },
  '/dashboard/emails/:id/again': { request_id: 'a' },
  '/dashboard/emails/:id/reschedule': RESCHEDULED,
  '/dashboard/chatapp/:id/reschedule': RESCHEDULED,
  '/dashboard/sms/:id/reschedule': RESCHEDULED,
  '/dashboard/settings': { name: 'Ours' },
  '/dashboard/checklist/test-email': { request_id: 'a' },
};

async function addressOf(path: string): Promise<string> {
  if (!path.includes(':')) return path;
  const prefix = Object.keys(FIXTURES).find((start) => path === start || path.startsWith(`${start}/`));
  const fixture = prefix === undefined ? undefined : await FIXTURES[prefix]?.();
  assert.ok(fixture, `FIXTURES has nothing for ${path}`);
  return path.replace(/:(\w+)/g, (_, name: string) => {
    assert.ok(fixture[name] !== undefined, `FIXTURES has no ${name} for ${path}`);
    return fixture[name];
  });
}

const open = (person: Visitor, method: 'GET' | 'POST', path: string, pattern = path) =>
  method === 'GET' ? person.get(path) : person.post(path, FIELDS[pattern] ?? {});

const members = PAGES.filter(([, , access]) => access !== 'public');

describe('every page of an organization', () => {
  it('is declared once', () => {
    assert.ok(members.length > 5, String(members.length));
    const names = PAGES.map(([method, path]) => `${method} ${path}`);
    assert.equal(new Set(names).size, names.length, 'each once');
  });

  for (const [method, path, access] of members) {
    it(`asks unauthenticated visitors to sign in: ${method} ${path}`, async () => {
      const { status, location = '' } = await open(visitor(service), method, await addressOf(path), path);
      assert.equal(status, 303);
      assert.ok(location.startsWith('/dashboard/sign-in'), location);
      const part = await visitor(service).get(await addressOf(path), { 'hx-request': 'true' });
      if (method === 'GET') assert.deepEqual([part.status, part.html], [401, '']);
    });

    for (const role of ROLES.slice(0, ROLES.indexOf(access as Role))) {
      it(`is not for the role ${role}: ${method} ${path}`, async () => {
        const { status, html } = await open(people[role], method, await addressOf(path), path);
        assert.equal(status, 403);
        assert.ok(textOf(html).includes(`needs the role ${access}`), textOf(html));
        assert.ok(html.includes('<nav class="main"'), 'with the navigation');
      });
    }

    if (method === 'POST') {
      for (const headers of [
        { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
        { origin: 'https://evil.example', 'sec-fetch-site': 'none' },
        { origin: 'null', 'sec-fetch-site': 'same-origin' },
        { 'sec-fetch-site': 'same-site' },
      ]) {
        it(`takes nothing from another site: ${path} ${JSON.stringify(headers)}`, async () => {
          const { status, html } = await people.owner.post(await addressOf(path), FIELDS[path] ?? {}, headers);
          assert.equal(status, 403);
          assert.ok(textOf(html).includes('nothing was changed'), textOf(html));
        });
      }
    }

    if (path.includes(':')) {
      it(`of another organization is not there: ${method} ${path}`, async () => {
        const { status } = await open(outsider, method, await addressOf(path), path);
        assert.equal(status, 404);
        const absent = await open(outsider, method, path.replace(/:\w+/g, 'usr_00000000000000000000000000'), path);
        assert.equal(absent.status, 404);
      });
    }
  }

  for (const [method, path] of members.filter((row) => row[0] === 'GET')) {
    it(`opens for an owner and contains no other organization: ${path}`, async () => {
      const page = await open(people.owner, method, await addressOf(path), path);
      assert.equal(page.status, 200, textOf(page.html));
      const isPage = String(page.headers['content-type']).startsWith('text/html');
      assert.ok(!isPage || textOf(page.html).includes('Ours'), textOf(page.html));
      assert.ok(
        !page.html.includes('Theirs') && !page.html.includes(outsider.email),
        'nothing of another organization',
      );
    });
  }
});

describe('the table of roles', () => {
  const changes = members.filter(([method, path]) => method === 'POST' && !OWN_ACCOUNT.test(path));
  const pathsOf = ({ routes }: (typeof RIGHTS)[number]) => routes.map((route) => `/dashboard${route}`);

  it('lists every change of an organization once', () => {
    assert.deepEqual(RIGHTS.flatMap(pathsOf).sort(), changes.map(([, path]) => path).sort());
  });

  it('names for each right the role that its routes require', () => {
    for (const right of RIGHTS) {
      for (const path of pathsOf(right)) {
        const [, , access] = changes.find((row) => row[1] === path) ?? [];
        assert.equal(access, right.role, path);
      }
    }
  });

  it('is shown to every member', async () => {
    for (const role of ROLES) {
      const text = textOf((await people[role].get('/dashboard/members')).html);
      assert.ok(text.includes('Create, rename and revoke API keys No No Yes'), text);
      assert.ok(text.includes('Add and remove suppressions No Yes Yes'), text);
    }
  });
});

describe('every answer', () => {
  it('loads nothing from elsewhere and no inline script or style, and is not kept', async () => {
    for (const [path, browser] of [
      ['/dashboard', people.owner],
      ['/dashboard/sign-in', visitor(service)],
      ['/dashboard/nowhere', people.owner],
    ] as const) {
      const { headers, html } = await browser.get(path);
      const policy = String(headers['content-security-policy']);
      for (const part of ["default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"]) {
        assert.ok(policy.includes(part), `${part} in ${policy}`);
      }
      assert.ok(!policy.includes('unsafe'), policy);
      assert.equal(headers['cache-control'], 'no-store');
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.doesNotMatch(html, /<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|https?:\/\/(?!127\.0\.0\.1)/);
    }
  });

  it('names assets that are immutable', async () => {
    const { html } = await people.owner.get('/dashboard');
    const files = [...html.matchAll(/(?:src|href)="(\/dashboard\/assets\/[^"]+)"/g)].map((match) => match[1] ?? '');
    assert.ok(files.length >= 4, files.join());
    for (const file of files) {
      const { status, headers } = await visitor(service).get(file);
      assert.equal(status, 200, file);
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
      assert.match(String(headers['content-type']), /^(?:text\/(?:css|javascript); charset=utf-8|image\/svg\+xml)$/);
      const zipped = await visitor(service).get(file, { 'accept-encoding': 'gzip, br' });
      assert.equal(zipped.headers['content-encoding'], 'gzip');
    }
  });

  it('is an HTML page also for unknown paths, and refuses other content types and large bodies', async () => {
    for (const path of ['/dashboard/nowhere', '/dashboard/assets/../../package.json', '/dashboard/assets/x/y.js']) {
      const { status, headers, html } = await people.owner.get(path);
      assert.equal(status, 404, path);
      if (path.startsWith('/dashboard/n')) {
        assert.match(String(headers['content-type']), /^text\/html/);
        assert.ok(textOf(html).includes('Not found'), textOf(html));
        assert.ok(html.includes('<nav class="main"'), 'with the navigation');
      }
    }
    const anonymous = await visitor(service).get('/dashboard/nowhere');
    assert.ok(anonymous.status === 404 && !anonymous.html.includes('<nav'), 'without a session there is none');
    const json = await people.owner.post('/dashboard/members', {}, { 'content-type': 'application/json' });
    assert.equal(json.status, 415);
    const large = await people.owner.post('/dashboard/members', { email: 'x'.repeat(200_000), role: 'member' });
    assert.equal(large.status, 413);
  });
});
