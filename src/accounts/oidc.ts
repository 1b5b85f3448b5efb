import * as client from 'openid-client';
import type { Logger } from 'pino';
import { bareAddress } from '../domain/email/address.ts';
import { ServiceError } from '../domain/errors.ts';
import { cacheFor } from '../lib/cached.ts';
import type { IdentityKey } from '../store/accounts/oidc-identities.ts';

const REQUEST_TIMEOUT_SECONDS = 10;
/** The maximum difference between the clocks of the issuer and this process. */
const CLOCK_TOLERANCE_SECONDS = 60;
/** The cache lifetime of the issuer's metadata. openid-client refreshes its keys more often. */
const METADATA_TTL_MS = 3_600_000;
/** The maximum length of `sub` (OpenID Connect Core §2). */
const MAX_SUBJECT_LENGTH = 255;

/** The secrets of one sign-in. The browser stores them, sealed, until the issuer redirects back. */
export interface OidcFlow {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** A person who has authenticated at the issuer. */
export interface OidcIdentity extends IdentityKey {
  /** In lower case; null unless the issuer has verified the address. */
  readonly email: string | null;
}

/** The configured identity provider. */
export interface Oidc {
  /** Its name on dashboard pages. */
  readonly name: string;
  /** Starts a sign-in. @returns the URL at the issuer, and the secrets for `finish` @throws ServiceError unavailable */
  readonly begin: () => Promise<{ url: string; flow: OidcFlow }>;
  /**
   * Exchanges the code of a callback for the identity.
   * @param search the query string of the callback
   * @throws ServiceError unauthorized if the issuer refused or its response is not valid for the flow; unavailable
   */
  readonly finish: (search: string, flow: OidcFlow) => Promise<OidcIdentity>;
}

interface OidcSettings {
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The URL to which the issuer redirects. */
  readonly callbackUrl: string;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * Creates a client for the authorization code flow with PKCE (RFC 7636), `state` and `nonce`. It reads the issuer's metadata on
 * first use, so the process can start while the issuer is down.
 */
export function makeOidc(settings: OidcSettings): Oidc {
  const { name, log } = settings;
  // Normalized like the redirect URI that openid-client derives from the URL of the callback.
  const callbackUrl = new URL(settings.callbackUrl).href;
  const configuration = cacheSuccess(() => discover(settings));
  /** Logs only a code, because messages and causes of errors may contain tokens and claims. */
  const fail = (error: unknown): never => {
    const reason = reasonOf(error);
    const isOutage = isUnreachable(error);
    log.warn({ issuer: settings.issuer, reason }, isOutage ? 'identity provider unreachable' : 'OIDC sign-in refused');
    if (isOutage) throw new ServiceError('unavailable', `${name} cannot be reached (${reason})`);
    throw new ServiceError(
      'unauthorized',
      reason === 'access_denied' ? `${name} denied access` : `${name} did not confirm the sign-in (${reason})`,
    );
  };
  return {
    name,
    begin: async () => beginFlow(await configuration().catch(fail), callbackUrl),
    finish: (search, flow) =>
      configuration()
        .then((config) => exchangeCode(config, new URL(callbackUrl + search), flow))
        .catch(fail),
  };
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<client.Configuration> {
  const url = new URL(issuer);
  const metadata = { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS };
  const options = [client.enableNonRepudiationChecks];
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- it is for development: settings allow http on this machine only
  if (url.protocol === 'http:') options.push(client.allowInsecureRequests);
  return client.discovery(url, clientId, metadata, clientAuthentication(clientSecret), {
    execute: options,
    timeout: REQUEST_TIMEOUT_SECONDS,
  });
}

/** Clients use HTTP Basic unless the issuer or their registration names another method (OpenID Connect Core §9). */
function clientAuthentication(clientSecret: string): client.ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(clientSecret), client.ClientSecretPost(clientSecret)];
  return (server, ...request) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const authenticate = methods.includes('client_secret_basic') ? basic : post;
    authenticate(server, ...request);
  };
}

async function beginFlow(config: client.Configuration, callbackUrl: string): Promise<{ url: string; flow: OidcFlow }> {
  const flow = {
    state: client.randomState(),
    nonce: client.randomNonce(),
    codeVerifier: client.randomPKCECodeVerifier(),
  };
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: callbackUrl,
    scope: 'openid email',
    code_challenge: await client.calculatePKCECodeChallenge(flow.codeVerifier),
    code_challenge_method: 'S256',
    state: flow.state,
    nonce: flow.nonce,
  });
  return { url: url.href, flow };
}

async function exchangeCode(
  config: client.Configuration,
  callback: URL,
  { state, nonce, codeVerifier }: OidcFlow,
): Promise<OidcIdentity> {
  const tokens = await client.authorizationCodeGrant(config, callback, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: codeVerifier,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  if (!claims || !isSubject(claims.sub)) throw new client.ClientError('the ID token has no valid subject');
  // An issuer may return the claims of the scope `email` only from UserInfo (OpenID Connect Core §5.4).
  const isInToken = claims['email'] !== undefined || config.serverMetadata().userinfo_endpoint === undefined;
  const person = isInToken ? claims : await client.fetchUserInfo(config, tokens.access_token, claims.sub);
  return { issuer: claims.iss, subject: claims.sub, email: verifiedEmail(person) };
}

function isSubject(subject: string): boolean {
  // Postgres cannot store NUL.
  return subject !== '' && subject.length <= MAX_SUBJECT_LENGTH && !subject.includes('\0');
}

function verifiedEmail({ email, email_verified: isVerified }: Readonly<Record<string, unknown>>): string | null {
  return isVerified === true && typeof email === 'string' ? (bareAddress(email) ?? null) : null;
}

/** Caches a result, but not a failure. */
function cacheSuccess<T>(load: () => Promise<T>): () => Promise<T> {
  let cached = cacheFor(METADATA_TTL_MS, load);
  return async () => {
    try {
      return await cached();
    } catch (error) {
      cached = cacheFor(METADATA_TTL_MS, load);
      throw error;
    }
  };
}

/** Returns true if the issuer did not respond, or responded with an unexpected status. */
function isUnreachable(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  // fetch() reports failed connections as a TypeError with a cause.
  if (error instanceof TypeError && cause !== undefined) return true;
  if (code === 'OAUTH_TIMEOUT') return true;
  return cause instanceof Response && cause.status !== 400 && cause.status !== 401;
}

/** Returns a short error code from OAuth, openid-client or the connection. */
function reasonOf(error: unknown): string {
  const { error: oauth, code, cause } = error as { error?: unknown; code?: unknown; cause?: unknown };
  const ofCause = (cause as { code?: unknown } | undefined)?.code;
  const candidates = [oauth, error instanceof TypeError ? ofCause : code, code, ofCause];
  const reason = candidates.find((each): each is string => typeof each === 'string') ?? 'unknown error';
  return reason.slice(0, 100);
}
