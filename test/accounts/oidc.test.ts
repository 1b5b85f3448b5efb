import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { pino } from 'pino';
import { makeOidc, type OidcFlow } from '../../src/accounts/oidc.ts';
import { ServiceError } from '../../src/domain/errors.ts';
import { CLIENT, type Fault, startIssuer } from '../support/oidc-issuer.ts';

const CALLBACK = 'https://Mail.example.com/dashboard/sign-in/oidc/callback';
const ADA = { sub: 'ada-1', email: 'Ada@Example.com', email_verified: true };

const issuer = await startIssuer();
issuer.register(CALLBACK.replace('Mail', 'mail'));
after(() => issuer.close());

const settings = {
  name: 'Example Login',
  issuer: issuer.url,
  clientId: CLIENT.id,
  clientSecret: CLIENT.secret,
  callbackUrl: CALLBACK,
  log: pino({ level: 'silent' }),
};
const oidc = makeOidc(settings);

/** @returns the query string of the callback, and the secrets of the flow */
async function approved(fault: Fault = {}, person: typeof ADA = ADA): Promise<{ search: string; flow: OidcFlow }> {
  const { url, flow } = await oidc.begin();
  return { search: new URL(issuer.approve(url, person, fault)).search, flow };
}

async function assertRefused(result: Promise<unknown>, code: string, message: RegExp): Promise<void> {
  await assert.rejects(result, (error) => {
    assert.ok(error instanceof ServiceError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  });
}

const NOW_SECONDS = Math.floor(Date.now() / 1_000);

describe('a sign-in at an issuer', () => {
  it('returns issuer, subject and verified address, from metadata that are read once', async () => {
    for (const person of [ADA, { ...ADA, email: 'ada@example.com' }]) {
      const { search, flow } = await approved({}, person);
      const identity = await oidc.finish(search, flow);
      assert.deepEqual(identity, { issuer: issuer.url, subject: 'ada-1', email: 'ada@example.com' });
    }
    const reads = issuer.requests.filter((path) => path === '/.well-known/openid-configuration');
    assert.equal(reads.length, 1);
  });

  it('has secrets of its own each time', async () => {
    const [a, b] = [await approved(), await approved()];
    const all = [a, b].flatMap(({ flow }) => Object.values(flow) as string[]);
    assert.equal(new Set(all).size, 6);
  });

  for (const [name, fault, reason] of [
    ['a wrong state', { redirect: { state: 'x'.repeat(43) } }, /OAUTH_INVALID_RESPONSE/],
    ['no state', { redirect: { state: undefined } }, /OAUTH_INVALID_RESPONSE/],
    ['no code', { redirect: { code: undefined } }, /OAUTH_INVALID_RESPONSE/],
    ['another issuer in the redirect', { redirect: { iss: 'https://evil.example' } }, /OAUTH_INVALID_RESPONSE/],
    ['no issuer in the redirect', { redirect: { iss: undefined } }, /OAUTH_INVALID_RESPONSE/],
    ['a code that was never issued', { redirect: { code: 'unknown' } }, /invalid_grant/],
    ['a wrong nonce', { claims: { nonce: 'y'.repeat(43) } }, /OAUTH_JWT_CLAIM_COMPARISON_FAILED/],
    ['no nonce', { claims: { nonce: undefined } }, /OAUTH/],
    ['another audience', { claims: { aud: 'another client' } }, /OAUTH_JWT_CLAIM_COMPARISON_FAILED/],
    ['another issuer in the token', { claims: { iss: 'https://evil.example' } }, /OAUTH_JWT_CLAIM_COMPARISON_FAILED/],
    ['an expired token', { claims: { exp: NOW_SECONDS - 120 } }, /OAUTH_JWT_TIMESTAMP_CHECK_FAILED/],
    ['a token signed by another key', { otherKey: true }, /OAUTH/],
    ['no subject', { claims: { sub: undefined } }, /OAUTH|unknown/],
    ['a subject that cannot be stored', { claims: { sub: 'a\0b' } }, /not confirm/],
    ['a canceled sign-in', { redirect: { error: 'access_denied', code: undefined } }, /^Example Login denied access$/],
    ['another error', { redirect: { error: 'server_error', code: undefined } }, /server_error/],
  ] as const satisfies readonly (readonly [string, Fault, RegExp])[]) {
    it(`is refused for ${name}`, async () => {
      const { search, flow } = await approved(fault);
      await assertRefused(oidc.finish(search, flow), 'unauthorized', reason);
    });
  }

  it('is refused with the code of another flow, whose verifier differs (PKCE)', async () => {
    const [ours, stolen] = [await approved(), await approved()];
    const code = new URLSearchParams(stolen.search).get('code') ?? '';
    const search = new URLSearchParams(ours.search);
    search.set('code', code);
    await assertRefused(oidc.finish(`?${String(search)}`, ours.flow), 'unauthorized', /invalid_grant/);
  });

  it('is refused with a code that was used', async () => {
    const { search, flow } = await approved();
    await oidc.finish(search, flow);
    await assertRefused(oidc.finish(search, flow), 'unauthorized', /invalid_grant/);
  });

  it('accepts clocks that differ by less than a minute', async () => {
    const { search, flow } = await approved({ claims: { exp: NOW_SECONDS - 20, iat: NOW_SECONDS - 320 } });
    assert.equal((await oidc.finish(search, flow)).subject, 'ada-1');
  });

  for (const claims of [
    { email_verified: false },
    { email_verified: 'true' },
    { email_verified: undefined },
    { email: 'no address' },
    { email: 'a@example.com\0' },
  ]) {
    it(`returns no address for ${JSON.stringify(claims)}`, async () => {
      const { search, flow } = await approved({ claims });
      assert.deepEqual(await oidc.finish(search, flow), { issuer: issuer.url, subject: 'ada-1', email: null });
    });
  }

  it('reads the address from UserInfo when the ID token has none', async () => {
    const other = await startIssuer({ emailInUserInfo: true });
    after(() => other.close());
    other.register(new URL(CALLBACK).href);
    const ofOther = makeOidc({ ...settings, issuer: other.url });
    const { url, flow } = await ofOther.begin();
    const { search } = new URL(other.approve(url, ADA));
    assert.equal((await ofOther.finish(search, flow)).email, 'ada@example.com');
  });

  it('fails as unavailable while the issuer is down, and works again afterwards', async () => {
    const fresh = makeOidc(settings);
    const { search, flow } = await approved();
    issuer.setDown(true);
    await assertRefused(fresh.begin(), 'unavailable', /^Example Login cannot be reached/);
    await assertRefused(oidc.finish(search, flow), 'unavailable', /^Example Login cannot be reached/);
    issuer.setDown(false);
    const { url } = await fresh.begin();
    assert.ok(url.startsWith(`${issuer.url}/authorize?`), url);
    const broken = await approved({ tokenStatus: 502 });
    await assertRefused(oidc.finish(broken.search, broken.flow), 'unavailable', /cannot be reached/);
  });

  it('fails as unavailable when the server is no issuer, or another one', async () => {
    for (const url of [`${issuer.url}/other`, issuer.url.replace('127.0.0.1', 'localhost')]) {
      await assert.rejects(makeOidc({ ...settings, issuer: url }).begin(), ServiceError, url);
    }
  });
});
