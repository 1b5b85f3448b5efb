import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

export const CLIENT = { id: 'sendwright', secret: 'a client secret: 50%+1 of it' };

/** The claims about a person. */
export interface Person {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: boolean | string;
}

/** How the answer to one sign-in differs from a correct one. */
export interface Fault {
  /** Claims of the ID token that replace the correct ones; undefined removes one. */
  readonly claims?: Record<string, unknown>;
  /** Signs with a key that the issuer does not publish. */
  readonly otherKey?: boolean;
  /** Parameters of the redirect that replace the correct ones; undefined removes one. */
  readonly redirect?: Readonly<Record<string, string | undefined>>;
  /** Answers the exchange of the code with this status and no JSON. */
  readonly tokenStatus?: number;
}

interface Grant {
  readonly person: Person;
  readonly request: URLSearchParams;
  readonly fault: Fault;
}

export type Issuer = Awaited<ReturnType<typeof startIssuer>>;

/** Starts an OpenID Connect provider on loopback. It refuses requests that are not exactly as the client is registered. */
export async function startIssuer({ emailInUserInfo = false } = {}) {
  const [keys, otherKeys] = [await generateKeyPair('RS256'), await generateKeyPair('RS256')];
  const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'key 1', alg: 'RS256', use: 'sig' };
  const grants = new Map<string, Grant>();
  const accessTokens = new Map<string, Person>();
  const people = new Map<string, Person>();
  const requests: string[] = [];
  const secrets: string[] = [];
  const state = { isDown: false, redirectUri: '' };

  const issue = (): string => {
    const secret = randomBytes(24).toString('base64url');
    secrets.push(secret);
    return secret;
  };

  /** Signs a person in for an authorization request. @returns where the browser is redirected */
  const approve = (authorizationUrl: string, person: Person, fault: Fault = {}): string => {
    const { searchParams: request } = new URL(authorizationUrl);
    const problem = requestProblem(request, state.redirectUri);
    if (problem !== undefined) throw new Error(problem);
    const code = issue();
    grants.set(code, { person, request, fault });
    const to = new URL(state.redirectUri);
    const answer: NonNullable<Fault['redirect']> = {
      code,
      state: request.get('state') ?? '',
      iss: issuer,
      ...fault.redirect,
    };
    for (const [name, value] of Object.entries(answer)) if (value !== undefined) to.searchParams.set(name, value);
    return to.href;
  };

  const idToken = async ({ person, request, fault }: Grant): Promise<string> => {
    const now = Math.floor(Date.now() / 1_000);
    const { sub, ...rest } = person;
    const claims = {
      ...{ iss: issuer, sub, aud: CLIENT.id, iat: now, exp: now + 300, nonce: request.get('nonce') },
      ...(!emailInUserInfo && rest),
      ...fault.claims,
    } as JWTPayload;
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', kid: jwk.kid })
      .sign((fault.otherKey ? otherKeys : keys).privateKey);
    secrets.push(token);
    return token;
  };

  const exchange = async (message: IncomingMessage): Promise<Answer> => {
    const form = new URLSearchParams(await text(message));
    const code = form.get('code') ?? '';
    const grant = grants.get(code);
    // Codes work once.
    grants.delete(code);
    if (message.headers.authorization !== basicAuthorization())
      return { status: 401, json: { error: 'invalid_client' } };
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const isRight =
      form.get('grant_type') === 'authorization_code' &&
      form.get('redirect_uri') === state.redirectUri &&
      grant?.request.get('code_challenge') === challenge;
    if (!grant || !isRight) return { status: 400, json: { error: 'invalid_grant' } };
    if (grant.fault.tokenStatus !== undefined) return { status: grant.fault.tokenStatus, html: '<h1>Trouble</h1>' };
    const accessToken = issue();
    accessTokens.set(accessToken, grant.person);
    return { json: { access_token: accessToken, token_type: 'Bearer', id_token: await idToken(grant) } };
  };

  const answer = async (message: IncomingMessage, url: URL): Promise<Answer> => {
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return { json: metadataOf(issuer) };
      case '/jwks':
        return { json: { keys: [jwk] } };
      case '/token':
        return exchange(message);
      case '/userinfo': {
        const person = accessTokens.get((message.headers.authorization ?? '').replace('Bearer ', ''));
        return person ? { json: person } : { status: 401, json: {} };
      }
      case '/authorize':
        return { html: loginPage(url) };
      case '/login': {
        const person = people.get(url.searchParams.get('email') ?? '');
        return person ? { status: 303, location: approve(url.href, person) } : { status: 404 };
      }
      default:
        return { status: 404 };
    }
  };

  const server = createServer((message, response) => {
    const url = new URL(message.url ?? '/', issuer);
    requests.push(url.pathname);
    if (state.isDown) {
      message.socket.destroy();
      return;
    }
    answer(message, url).then(
      (given) => send(response, given),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  const issuer = `http://127.0.0.1:${await listen(server)}`;
  return {
    url: issuer,
    /** The paths of all requests so far. */
    requests,
    /** Every code and token that was issued. */
    secrets,
    approve,
    /** People who can sign in on its page, by their address there. */
    people,
    /** Registers the client's redirect URI. */
    register: (uri: string) => (state.redirectUri = uri),
    /** Closes every connection without an answer. */
    setDown: (isDown: boolean) => (state.isDown = isDown),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Answer {
  readonly status?: number;
  readonly json?: unknown;
  readonly html?: string;
  readonly location?: string;
}

function send(response: ServerResponse, { status = 200, json, html, location }: Answer): void {
  response.writeHead(status, {
    'content-type': json === undefined ? 'text/html' : 'application/json',
    ...(location !== undefined && { location }),
  });
  response.end(json === undefined ? html : JSON.stringify(json));
}

function metadataOf(issuer: string) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    authorization_response_iss_parameter_supported: true,
  };
}

function requestProblem(request: URLSearchParams, redirectUri: string): string | undefined {
  const expected = {
    client_id: CLIENT.id,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'openid email',
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(expected)) {
    if (request.get(name) !== value) return `${name} is ${String(request.get(name))} instead of ${value}`;
  }
  for (const name of ['state', 'nonce', 'code_challenge']) {
    if ((request.get(name) ?? '').length < 32) return `${name} is not random`;
  }
  return undefined;
}

/** RFC 6749 §2.3.1: id and secret are form-encoded. */
function basicAuthorization(): string {
  const encoded = [CLIENT.id, CLIENT.secret].map((text) => new URLSearchParams({ '': text }).toString().slice(1));
  return `Basic ${Buffer.from(encoded.join(':')).toString('base64')}`;
}

/** A form that sends the parameters of the request and the address. */
function loginPage({ searchParams }: URL): string {
  const hidden = [...searchParams].map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">`);
  return `<!doctype html><html lang="en"><title>Example Login</title><link rel="icon" href="data:,"><h1>Example Login</h1>
    <form action="/login">${hidden.join('')}<label>Address <input name="email"></label><button>Continue</button></form>`;
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
