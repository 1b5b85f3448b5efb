import assert from 'node:assert/strict';
import { after } from 'node:test';
import { makeOidc, type Oidc } from '../../src/accounts/oidc.ts';
import { OIDC_CALLBACK, OIDC_SIGN_IN } from '../../src/dashboard/oidc-flow.ts';
import { startService } from '../http/service.ts';
import { CLIENT, type Fault, type Person, startIssuer } from '../support/oidc-issuer.ts';
import { type Page, visitor, type Visitor } from './visitor.ts';

/** A service whose users can sign in at an issuer, for the tests of a file. */
export async function useServiceWithIssuer() {
  const issuer = await startIssuer();
  // The redirect URI contains the port of the service.
  let made: Oidc;
  const oidc: Oidc = {
    name: 'Example Login',
    begin: () => made.begin(),
    finish: (search, flow) => made.finish(search, flow),
  };
  const service = await startService({ oidc });
  const callbackUrl = service.url + OIDC_CALLBACK;
  issuer.register(callbackUrl);
  /** Forgets the issuer's metadata, as a new process does. */
  const restart = () => {
    const settings = { issuer: issuer.url, clientId: CLIENT.id, clientSecret: CLIENT.secret, callbackUrl };
    made = makeOidc({ name: oidc.name, ...settings, log: service.deps.log });
  };
  restart();
  after(async () => {
    await service.close();
    await issuer.close();
  });

  /** Begins a sign-in. @returns the URL at the issuer */
  const begin = async (browser: Visitor, next = '/dashboard'): Promise<string> => {
    const { status, location = '' } = await browser.get(`${OIDC_SIGN_IN}?next=${encodeURIComponent(next)}`);
    assert.equal(status, 303);
    assert.ok(location.startsWith(`${issuer.url}/authorize?`), location);
    return location;
  };
  /** Signs in at the issuer and comes back. @returns the answer of the callback */
  const signIn = async (browser: Visitor, person: Person, next?: string, fault?: Fault): Promise<Page> =>
    browser.get(issuer.approve(await begin(browser, next), person, fault));
  /** A browser that a person has signed in with. */
  const signedInBy = async (person: Person): Promise<Visitor> => {
    const browser = visitor(service);
    const { status, html } = await signIn(browser, person);
    assert.equal(status, 303, html);
    return browser;
  };
  return { service, issuer, begin, signIn, signedInBy, restart };
}

let count = 0;

/** A person at the issuer whose address it has verified. */
export function personOf(email: string): Person {
  return { sub: `subject ${++count}`, email, email_verified: true };
}
